// tutti-info stalls: asks a running process what its operations wait for.
#pragma once

namespace tutti {

/// Prints what process `pid` answers, or why it does not. The exit code.
int askForStalls(int pid);

}  // namespace tutti
