// A kernel module of another build: its interface has another number.
#include "device/simt/simt_host_abi.h"

extern "C" [[gnu::visibility("default")]] const tutti::simt::HostKernelTable* tuttiHostKernels() {
  static constexpr tutti::simt::HostKernelTable kTable{tutti::simt::kHostAbiVersion + 1, 0, nullptr};
  return &kTable;
}
