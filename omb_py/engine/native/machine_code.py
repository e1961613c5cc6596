"""Machine code of a shape, made once for each user and kept (:mod:`omb_py.user_cache`): a rank loads bytes, not LLVM.

What is kept is the text section of an object file: it refers to nothing outside itself, which is checked when it is
made, so it runs wherever it is put. It is for any processor of its architecture: LLVM is asked for no more. Where
instruction caches must be told of new code, as on AArch64, LLVM loads it, and nothing is kept.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from functools import cache
from typing import Any, Final

from omb_py import user_cache
from omb_py.digests import hex_digest
from omb_py.engine.native.codegen import Shape, llvm_text

_KEPT_FOR: Final = ("x86_64",)
"""Architectures that see new code by themselves."""
_ELSEWHERE: Final = (".rodata", ".data", ".bss", ".rela.text", ".rel.text")
"""Sections of code that refers to what lies outside it."""
_READ_AND_RUN: Final = 0x1 | 0x4
"""PROT_READ and PROT_EXEC of mprotect(2)."""
_loaded: list[object] = []
"""What holds the code in memory: it stays for good."""


@cache
def address_of_code(shape: Shape, seconds: bool) -> int:
    """The address of the function ``run`` of :func:`~omb_py.engine.native.codegen.llvm_text`."""
    text = llvm_text(shape, seconds)
    machine = os.uname().machine
    if machine not in _KEPT_FOR:
        return _load_by_llvm(text)
    name = f"{machine}-{hex_digest(text)}.code"
    code = user_cache.load(name)
    if code is None:
        code = compiled(text)
        if not code:
            return _load_by_llvm(text)
        user_cache.save(name, code)
    return load(code)


def load(code: bytes) -> int:
    """Put code into memory that cannot be written any more. Returns its address. Raises OSError."""
    memory = mmap.mmap(-1, len(code))
    memory[:] = code
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(len(code)), _READ_AND_RUN):
        raise OSError(ctypes.get_errno(), "machine code cannot be made executable")
    _loaded.append(memory)
    return address


def compiled(text: str) -> bytes:
    """The code of a module, which begins with its first function; empty where it refers to what lies elsewhere."""
    import llvmlite.binding as llvm  # heavy, and only the first rank of a user needs it

    target = _target(reloc="pic", codemodel="small")
    file = llvm.ObjectFileRef.from_data(target.emit_object(llvm.parse_assembly(text)))
    sections = {(section.name() or b"").decode(): bytes(section.data()) for section in file.sections()}
    return (
        b"" if any(content for name, content in sections.items() if name.startswith(_ELSEWHERE)) else sections[".text"]
    )


def _target(**how: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(opt=2, **how)


def _load_by_llvm(text: str) -> int:
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), _target())
    engine.finalize_object()
    _loaded.append(engine)
    return int(engine.get_function_address("run"))
