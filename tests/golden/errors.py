"""Bad input: the exit code and the line of each."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden import badsuites
from tests.golden.running import Place
from tests.golden.suites import MINE

_LINES = {
    "names": """
        alreduce
        osu_allreduc
        dctor
        --alreduce
        --debugg
        explain
        explain alreduce
        explain latency -n 3
        explain latency -W 3
        explain barrier -m 8
        explain latency --backend mpi4
        explain latency -m 8,16
        list --format xml
        doctor extra
        completion tcsh
        results lst
        results
        suite
        suite shw quick
        train mpl
        train
        replay none.json --backend mock
        workloads dpp
        workloads ddp:modell=resnet50
        workloads ddp:model=resnet51
        workloads ddp --predict --scaling
        workloads --predict
        workloads ddp --where ranks=2
        workloads ddp --scaling
        """,
    "values": """
        latency --backend mpich
        latency --backend mock,mock
        latency --backend mock,
        latency --binding mpi4pi
        latency --binding mpi4py --backend mock
        latency -d gpus
        latency --buffer nunpy
        allreduce -T mpi_itn
        allreduce -T int32,mpi_int
        allreduce --op summ
        allreduce --op band -T float32 --backend mock
        allreduce --process-sync bar
        allreduce --format jsn
        allreduce --launcher slurm
        allreduce --thread-level multi
        latency -n 3
        latency -n 1
        allreduce -n 1
        allreduce -n 0
        allreduce -n two
        allreduce -n
        allreduce -m 1M:4
        allreduce -m -8
        allreduce -m 8,8
        allreduce -m 1:8:1
        allreduce -m big
        allreduce -m 0:0
        allreduce -m 1:1:1:1
        allreduce -i 0
        allreduce -i many
        allreduce -i 64:3
        allreduce -x -1
        allreduce --precision 0
        allreduce --precision 200%
        allreduce --time-limit 0
        allreduce --timeout soon
        allreduce --launches 0
        allreduce --seed -1
        allreduce --repeat-for never
        bw -W 0
        bcast --op sum
        latency -W 8
        latency -l
        barrier -W 8
        barrier --op sum
        allreduce -z0
        allreduce -z1,2,101
        allreduce -clog:
        allreduce --validation=lg
        allreduce --tag novalue
        allreduce --store=
        allreduce --store x --no-store
        allreduce --launcher-args "'"
        allreduce --mesage-size 8
        allreduce -Q
        allreduce -j
        allreduce --inplace
        allreduce H H
        latency X D
        latency H
        latency -d managed H D
        put_latency -s fense
        put_latency -w shard
        get_bw -s
        latency -D vect:8
        latency -D vect:4:8 --backend mock
        latency -D indx:none.txt --backend mock
        allreduce -D cont
        neighbor_alltoall -N cart:2 --backend mock -n 4
        neighbor_alltoall -N ring --backend mock -n 4
        neighbor_alltoall -N graph:none.txt --backend mock -n 4
        alltoallv --imbalance 2 --backend mock
        alltoallv --traffic none.txt --backend mock
        bcast -k fixed:9 --backend mock -n 2
        bcast -k roate
        latency_mt -t 0
        partitioned_latency -q 0
        step --workload dpp
        step --workload ddp:model=vgg
        step --workload ddp:scale=0
        step --workload
        step --backend mock --predict --format json
        allreduce --backend mock --predict
        step --backend mock --predict --no-store
        latency -G gif
        latency --cache warm
        bcast --timing graf
        bcast --nccl algo=ring
        hypercube -n 3 --backend mock
        """,
    "backends": """
        put_latency --backend gloo
        allreduce --backend gloo --op land
        bcast --backend gloo -T complex64
        alltoall --backend gloo -l
        latency --backend gloo -D cont
        gatherv --backend gloo
        allreduce_persistent --backend gloo
        latency --backend nccl
        latency --backend mock -I
        allreduce --backend mock --cache rotate
        allreduce --backend mock --timing graph
        allreduce --backend mock --nccl min_ctas=2
        allreduce --backend mock --buffer object
        allreduce --backend mock --hosts a,b -m 8:8 -i 3 --no-store
        allreduce --backend mock --launcher mpiexec -m 8:8 -i 3 --no-store
        """,
    "mock": """
        latency --backend mock --mock alpha
        latency --backend mock --mock alpa=1us
        latency --backend mock --mock alpha=soon
        latency --backend mock --mock alpha=1us,alpha=2us
        latency --backend mock --mock noise=-1
        latency --backend mock --mock noise=lots
        latency --backend mock --mock straggler=5:1us
        latency --backend mock --mock straggler=1
        latency --backend mock --mock nodes=0
        latency --backend mock --mock nodes=3
        latency --backend mock --mock spike=2:10
        latency --backend mock --mock flip=9
        latency --backend mock --mock flip=a
        latency --backend mock --mock link=1
        latency --backend mock --mock slow=1:0 -m 8:8 -i 3 --no-store
        latency --backend mock --mock data=maybe
        latency --backend mock --mock series=
        latency --backend mock --mock eager=big
        latency --backend mock --mock data=off -c
        """,
    "reports": """
        compare
        compare a b c
        compare nosuch last
        compare --sett NEW:A=b latency x
        compare --env NEW latency
        compare --env NWE=v1 latency
        compare --env NEW=/nowhere/v1 latency
        compare --set NEW:TLS latency
        compare --set NEW:A=b
        compare --set NEW:A=b latencyy
        compare --set NEW:A=b latency --oops
        compare --option NEW:bindng=mpi4py latency
        compare allreduce --backend mock -n 2
        compare --set NEW:A=b allreduce --backend mock --launches 1
        compare --set NEW:A=b allreduce --backend mock --rounds 4
        compare --set NEW:A=b allreduce --backend mock --no-store
        compare --set NEW:A=b allreduce --backend mock --output a.txt
        compare --option NEW:message-size=8:8 allreduce --backend mock -n 2 -m 8:64
        compare --set NEW:A=b quik
        compare --set NEW:A=b ./none.toml
        aa
        aa bcastt
        aa quik
        guidelines gl99
        guidelines alreduce
        guidelines --launches 1 --backend mock
        guidelines --backend mpi,gloo
        guidelines --output x.txt
        guidelines -n 1 --backend mock
        guidelines --fromat json
        guidelines --delta 0
        links --backend mock
        links --backend mock -n 3
        links --backend mock --hosts a,b,c,a
        links --backend mock --hosts a,b,c,d -n 5
        links --backend mock -n 4 --rounds paralel
        links --backend mock -n 4 --small "7 apples"
        links --backend mock -n 4 -G png
        links --backend mock -n 8 --per-node 3
        links --backend mock -n 4 --output gone/x.json
        links --backend mock -n 4 --output x.pdf
        links --backend mock -n 4 --passes 0
        links --backend mock -n 4 -i 3
        links --backend mock -n 4 --binding mpi4py
        history alreduce
        history allreduce --band larg
        history allreduce --band small -m 8
        model bcast
        model allreduce --predict 1
        report none
        report no=equals=sign
        dashboard none
        results list --store none
        results show --store none
        results export --where benchmark
        results export --format xls
        results import none.log
        results prune
        results prune --older-than soon
        results compact --older-than -1d
        """,
    "suites": """
        run
        run quik
        run none.toml
        run quick extra
        run quick --resume --no-store
        run quick --op som
        run quick --windw 3
        run quick --store x --no-store
        suite check none.toml
        suite show quick --backend mok
        accept quick
        accept misspelt.toml --backend mock
        accept acceptanze
        accept nightly
        accept mine.toml --output a.pdf
        accept mine.toml --baseline last
        accept mine.toml --format pdf
        accept mine.toml --launches 3
        accept mine.toml --output gone/a.xml
        run quick --nodes 2
        run quick --submit slrum
        """,
}


def files() -> dict[str, Callable[[Place], str]]:
    """Name of a file -> what makes it."""
    return {**{f"errors/{group}.txt": _refused(group) for group in _LINES}, "errors/suite-files.txt": badsuites.checked}


def _refused(group: str) -> Callable[[Place], str]:
    def made(place: Place) -> str:
        place.write("mine.toml", MINE)
        place.write("misspelt.toml", MINE.replace("[[criterion]]", "[[criterium]]", 1))
        return place.shown(*(line.strip() for line in _LINES[group].strip().splitlines()))

    return made
