from __future__ import annotations

from typing import Any

from omb_py.results.compare.environment_diff import differences, say


def provenance(version: str = "2.30", environment: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "library": "NCCL",
        "library_version": version,
        "library_string": f"NCCL {version} built today",
        "software": {"python": "3.12", "packages": {"mpi4py": "4.1"}, "library": f"NCCL {version}"},
        "environment": environment or {},
        "node_facts": [{"host": "n1", "kernel": "6.1"}],
        "run": {"run_id": "x"},
        **more,
    }


def row(version: str = "2.30", binding: str = "native") -> dict[str, Any]:
    return {
        "library": "NCCL",
        "library_version": version,
        "backend": "nccl",
        "binding": binding,
        "thread_level": "single",
    }


def test_a_library_and_nothing_else() -> None:
    found = differences([provenance()], [provenance("2.32")], (row(), row("2.32")))
    assert say(found) == ["library: NCCL 2.30 → NCCL 2.32; nothing else that is recorded"]


def test_nothing() -> None:
    assert say(differences([provenance()], [provenance()], (row(), row()))) == ["nothing that is recorded"]
    assert say(differences([], [])) == ["nothing that is recorded"]


def test_a_variable_a_package_a_kernel_and_the_binding() -> None:
    other = provenance(
        environment={"UCX_TLS": "tcp"},
        node_facts=[{"host": "n2", "kernel": "6.9"}],
        software={"python": "3.12", "packages": {"mpi4py": "4.2"}},
    )
    found = [str(one) for one in differences([provenance()], [other], (row(), row(binding="mpi4py")))]
    assert found[0] == "binding: native → mpi4py", "the most telling first"
    assert "variable UCX_TLS: not set → tcp" in found and "node kernel: 6.1 → 6.9" in found
    assert "software mpi4py: 4.1 → 4.2" in found


def test_names_of_hosts_are_no_difference() -> None:
    other = provenance(node_facts=[{"host": "n7", "kernel": "6.1"}])
    assert differences([provenance()], [other], (row(), row())) == []


def test_several_values_on_a_side() -> None:
    found = differences([provenance(), provenance("2.31")], [provenance("2.32")])
    assert "library_version: 2.30 or 2.31 → 2.32" in map(str, found)


def test_what_was_asked_for_and_no_list_allows() -> None:
    asked = provenance(launch={"config": {"set": {"FOO": "1"}, "options": ["--binding=mpi4py", "--in-place"]}})
    found = list(map(str, differences([provenance()], [asked], (row(), row()))))
    assert found == [
        "variable FOO: not set → 1",
        "option binding: not given → mpi4py",
        "option in-place: not given → given",
    ]


def test_modules_are_named_and_of_programs_also_packages_and_environments() -> None:
    def side(modules: list[str], pip: list[str], env: str, **more: object) -> dict[str, Any]:
        return provenance(launch={"config": {"modules": modules, "pip": pip, "env": env}}, **more)

    old, new = side(["mpi/1", "x"], ["a==1"], "/v1"), side(["mpi/2", "x"], ["a==2"], "/v2")
    assert list(map(str, differences([old], [new]))) == ["module: mpi/1 x → mpi/2 x"]
    old, new = {**old, "program": "app"}, {**new, "program": "app"}
    assert list(map(str, differences([old], [new]))) == [
        "environment: /v1 → /v2",
        "module: mpi/1 x → mpi/2 x",
        "package: a==1 → a==2",
    ]


def test_a_setting_of_a_training_that_nobody_gave_has_its_default() -> None:
    asked = provenance(launch={"config": {"options": ["--parallel=fsdp"]}})
    sides = ({**row(), "parameters": {"workload": "mlp:batch=2,parallel=ddp"}}, row())
    assert list(map(str, differences([provenance()], [asked], sides))) == ["option parallel: ddp → fsdp"]


def test_a_variable_is_not_told_twice() -> None:
    asked = provenance(environment={"UCX_TLS": "tcp"}, launch={"config": {"set": {"UCX_TLS": "tcp"}}})
    assert len(differences([provenance()], [asked], (row(), row()))) == 1


def test_libraries_of_another_build() -> None:
    def mapped(build: str) -> dict[str, Any]:
        files = [{"path": f"/a/{build}/libucp.so.0", "build_id": build}, {"path": "/a/_x.so", "build_id": build}]
        return provenance(loaded_libraries=files)

    (one,) = differences([mapped("aaaabbbbcc")], [mapped("ddddeeeeff")], (row(), row()))
    assert str(one) == "loaded libraries of other builds (libucp.so.0): aaaabbbb → ddddeeee"


def test_a_library_whose_build_one_side_does_not_know_is_no_difference() -> None:
    def mapped(build: str | None) -> dict[str, Any]:
        return provenance(loaded_libraries=[{"path": "/a/libucp.so.0", "build_id": build}])

    assert not differences([mapped("aaaabbbbcc")], [mapped(None)], (row(), row()))


def test_a_library_that_one_side_has_not_or_has_twice_is_no_other_build() -> None:
    def mapped(**builds: str) -> dict[str, Any]:
        return provenance(loaded_libraries=[{"path": f"/a/{n}.so.0", "build_id": b} for n, b in builds.items()])

    assert not differences([mapped(libucp="aaaabbbb")], [mapped(libfabric="ddddeeee")], (row(), row()))
    two_builds = [mapped(libucp="aaaabbbb"), mapped(libucp="ccccdddd")]
    assert not differences(two_builds, [mapped(libucp="ddddeeee")], (row(), row()))


def test_many_differences_have_a_line_each_and_a_family_of_variables_shares_one() -> None:
    variables = {f"OMPI_MCA_{name}": "1" for name in ("btl", "pml", "coll")} | {"UCX_TLS": "tcp"}
    other = provenance("2.32", environment=variables)
    assert say(differences([provenance()], [other], (row(), row("2.32")))) == [
        "5 facts, nothing else that is recorded",
        "  library: NCCL 2.30 → NCCL 2.32",
        "  only NEW has 3 variables OMPI_MCA_*, as OMPI_MCA_btl",
        "  variable UCX_TLS: not set → tcp",
    ]


def test_a_long_value_is_cut_between_its_parts() -> None:
    path = ":".join(f"/opt/libraries/of/number/{n}" for n in range(9))
    (found,) = differences([provenance()], [provenance(environment={"LD_LIBRARY_PATH": path})])
    shown = found.new.removesuffix(" …")
    assert shown != found.new and path.startswith(f"{shown}:") and len(shown) <= 80
