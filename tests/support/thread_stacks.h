// Where every thread of a test program stands, for one that hangs where nobody can attach a debugger.
#pragma once

namespace tutti::test {

/// Writes to standard error the call stack of each thread of this process, functions named as far as addr2line knows
/// them. For a process that is about to end: it takes SIGURG's handler over, and gives up on a thread that does not
/// answer within a second.
void writeThreadStacks();

}  // namespace tutti::test
