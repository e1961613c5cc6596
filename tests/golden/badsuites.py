"""Suite files with one thing wrong: the line that names it."""

from __future__ import annotations

from tests.golden.running import Place

_ENTRY = '[[entry]]\nbenchmarks = ["latency"]\nmessage-size = "8,1K"\n'
_HEAD = 'name = "bad"\ndescription = "d"\n'
_CRITERION = '[[criterion]]\nid = "a"\nbenchmark = "latency"\n'
_GOOD = _HEAD + _ENTRY
_FILES = {
    "not TOML": "name = \n",
    "empty": "",
    "no entry": _HEAD,
    "no description": 'name = "bad"\n' + _ENTRY,
    "unknown table": _GOOD + "[[entri]]\n",
    "unknown key": _GOOD + 'mesage-size = "8"\n',
    "unknown benchmark": _HEAD + '[[entry]]\nbenchmarks = ["latenzy"]\n',
    "no benchmarks": _HEAD + '[[entry]]\nmessage-size = "8"\n',
    "wrong type": _HEAD + "[[entry]]\nbenchmarks = 3\n",
    "bad size": _HEAD + '[[entry]]\nbenchmarks = ["latency"]\nmessage-size = "8,,"\n',
    "bad ranks": _GOOD + 'ranks = "many"\n',
    "no such option": _GOOD + "window-size = 3\n",
    "number below its rule": _GOOD + "iterations = 0\n",
    "no number": _GOOD + 'iterations = "ten"\n',
    "a table as a value": _GOOD + "iterations.x = 1\n",
    "a time as a value": _GOOD + "iterations = 07:32:00\n",
    "an empty list": _GOOD + "type = []\n",
    "a list in a list": _GOOD + "type = [[1]]\n",
    "a value twice": _GOOD + 'type = ["char", "char"]\n',
    "a name twice": _HEAD + '[[entry]]\nbenchmarks = ["bw",\n"osu_bw"]\n',
    "no flag": _GOOD + "validation = 1\n",
    "no benchmark takes it": _HEAD + '[defaults]\nop = "sum"\n' + _ENTRY,
    "one value for all": _HEAD + "[defaults]\nseed = [1, 2]\n" + _ENTRY,
    "no tag": _HEAD + '[defaults]\ntag = ["a"]\n' + _ENTRY,
    "for the whole suite": _GOOD + "timeout = 3\n",
    "ranks that do not fit": _GOOD + "ranks = [2, 3]\n",
    "ranks twice": _GOOD + "ranks = [2, 2]\n",
    "no size holds it": _HEAD + '[[entry]]\nbenchmarks = ["latency"]\nmessage-size = "1:4"\ntype = "float64"\n',
    "entry twice": _GOOD + _ENTRY,
    "no name": _ENTRY,
    "a name with a blank": 'name = "a b"\n' + _ENTRY,
    "entry of one bracket": _HEAD + '[entry]\nbenchmarks = ["bw"]\n',
    "defaults of no table": _HEAD + "defaults = 1\n" + _ENTRY,
    "no number of ranks": _GOOD + "ranks = []\n",
    "a flag for a number": _GOOD + "iterations = true\n",
    "a number for a flag": _HEAD + '[[entry]]\nbenchmarks = ["bcast"]\nfull = 1\n',
    "key twice": _GOOD + "ranks = 2\nranks = 2\n",
    "bad default": _HEAD + '[defaults]\nbackend = "mok"\n' + _ENTRY,
    "of the line": _HEAD + '[defaults]\nstore = "x"\n' + _ENTRY,
    "criterion without a bound": _GOOD + _CRITERION,
    "criterion without an id": _GOOD + '[[criterion]]\nbenchmark = "latency"\nmax = "1 us"\n',
    "bad id": _GOOD + '[[criterion]]\nid = "a b"\nbenchmark = "latency"\nmax = "1 us"\n',
    "id twice": _GOOD + 2 * (_CRITERION + 'max = "1 us"\n'),
    "bad unit": _GOOD + _CRITERION + 'max = "5 uss"\n',
    "bad number": _GOOD + _CRITERION + 'max = "five us"\n',
    "unit of another kind": _GOOD + _CRITERION + 'max = "5 GB/s"\n',
    "min over max": _GOOD + _CRITERION + 'max = "5 us"\nmin = "6 us"\n',
    "two bounds": _GOOD + _CRITERION + 'max = "5 us"\nbaseline = "5%"\n',
    "unknown metric": _GOOD + _CRITERION + 'metric = "medain"\nmax = "5 us"\n',
    "metric it lacks": _GOOD + _CRITERION + 'metric = "overlap"\nmax = "5 %"\n',
    "size not measured": _GOOD + _CRITERION + 'message-size = "16"\nmax = "5 us"\n',
    "size in a table": _GOOD + _CRITERION + 'max = { 16 = "5 us" }\n',
    "benchmark not measured": _GOOD + '[[criterion]]\nid = "a"\nbenchmark = "bcast"\nmax = "1 us"\n',
    "unknown key of a criterion": _GOOD + _CRITERION + 'max = "5 us"\nrnks = 2\n',
    "guideline it lacks": _GOOD + _CRITERION + 'guideline = "reduce + bcast"\n',
    "efficiency of latency": _GOOD + _CRITERION + 'efficiency = "25%"\n',
    "drift without a soak": _GOOD + _CRITERION + 'drift = "5%"\n',
    "interference of nothing": _GOOD + _CRITERION + 'interference = "5%"\n',
    "beside nonsense": '[accept]\nbackground-job = "latency -n 2 --backend mock --nonsense"\n',
    "bad undecided": '[accept]\nundecided = "maybe"\n',
    "bad confidence": '[accept]\nconfidence = "150%"\n',
    "most below launches": "[accept]\nlaunches = 5\nmost-launches = 3\n",
    "one launch": "[accept]\nlaunches = 1\n",
    "unknown key of accept": "[accept]\nlauches = 3\n",
}


def checked(place: Place) -> str:
    """What ``suite check`` says of files with one thing wrong."""
    parts = []
    for title, text in _FILES.items():
        if text.startswith("[accept]"):
            text = _GOOD + _CRITERION + 'max = "5 us"\n' + text
        place.write("bad.toml", text)
        parts.append(f"== {title}\n" + place.shown("suite check bad.toml"))
    return "\n".join(parts)
