// How libFuzzer changes the inputs of the XML readers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "mutate.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t maxSize);

/// Half of the time the elements, else bytes as libFuzzer knows how to.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t maxSize,
                                               unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, maxSize);
  const std::string changed = tutti::fuzz::mutateXml({reinterpret_cast<const char*>(data), size}, seed);
  if (changed.size() > maxSize) return LLVMFuzzerMutate(data, size, maxSize);
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}
