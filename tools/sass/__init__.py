"""Reads the machine code of GPU kernels (SASS, as nvdisasm prints it) and says what the loops that move data do; for
tools/kernel-report --sass. code.py has instructions, control flow and loops, loops.py what they do with data, report.py
the tables and the targets.

Definitions
  wide           an access of 8 or 16 bytes a thread to global or generic memory: LD, ST (generic: the processor finds
                 out which memory the address is in), LDG, STG (global). LDS, STS are shared, LDL, STL local memory.
  loop           blocks that reach one another (a strongly connected part of the control flow graph); taking away the
                 edges into its head leaves the loops inside it. Loops that share their head are one; ptxas makes none.
  data load      a wide load of a loop of whose value a wide store of the same loop stores a part: followed through
                 registers, not through memory. So pointers and counters that a loop loads as well are none.
  data loop      a loop with a data load that has no smaller data loop inside. If a kernel has data loops that touch 16
                 bytes at once, those that only touch 8 (for addresses that allow no more) do not count.
  packs, lines   a data loop moves packs if all its data loads and wide stores are of one size, lines (with flags) if
                 they are of 8 and of 16 bytes.
  reduces        a data loop that stores something made of two loads by one instruction; others copy. A choice between
                 two (SEL, paths that meet, a load that is tried again) makes nothing.
  in flight      the most data loads that a thread issues before an instruction waits for one of them. The encoding says
                 which waits; where a listing has none, what touches a register that a load fills, by use or by
                 overwriting. A fence and a call wait, too. Along a path through the blocks of the loop, each once, and
                 on into the next turn; where paths meet, the one with most goes on. Of two loads into one register
                 under a predicate and its opposite a thread issues one.
  outstanding    the same, if a wait ends only those loads that it is for.
  remainder      what is left after the last full batch: a data loop beside one of the same kind, in the same
                 surrounding loop, that has more bytes in flight. And elements that do not lie as wide accesses need:
                 packs beside lines. Remainders are shown and not judged.
  step loop      the innermost loop around a data loop that has a fence of scope SYS or, where none has, the innermost.
                 One turn of it is a step, or a turn of several steps where the compiler has put them into one loop.
  fence          MEMBAR; .SYS waits for other devices. Per step: the most on any path through one turn of a step loop,
                 loops inside it passed once. A thread that takes no such path has fewer.
  poll           a loop without loops inside and without global or generic stores whose end depends on what it loads.
"""
