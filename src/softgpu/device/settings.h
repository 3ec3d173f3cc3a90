// What the environment asks of the software GPU: the variables SOFTGPU_* and CUDA_VISIBLE_DEVICES, read once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tutti::softgpu {

/// What NICs are told of the devices' memory.
enum class NicReach : std::uint8_t {
  None,
  Address,  ///< it is memory of this process: they can register it by its address
  DmaBufs,  ///< and it is given away as files that stand for dma-bufs
};

struct Settings {
  int devices = 1;  ///< SOFTGPU_DEVICES
  bool devicesGiven = false;
  std::string topology;                     ///< SOFTGPU_TOPO: a topology XML file, empty for none
  int host = 0;                             ///< SOFTGPU_HOST: which of the file's hosts this process is on
  std::optional<std::uint64_t> randomSeed;  ///< SOFTGPU_SCHEDULE=random:SEED
  std::optional<std::uint64_t> weakSeed;    ///< SOFTGPU_WEAK_MEMORY=SEED: stores late, loads early
  std::map<std::string, int> failures;      ///< SOFTGPU_FAIL=cuMemAlloc:3,…: the nth call of a name fails
  int blockSlots = 4096;                    ///< SOFTGPU_BLOCK_SLOTS: blocks resident on a device at once
  std::uint64_t memoryBytes = 0;  ///< SOFTGPU_MEMORY per device; default: 64 GiB, at most the machine's memory
  std::optional<std::vector<int>> visible;  ///< CUDA_VISIBLE_DEVICES
  NicReach nicReach = NicReach::None;       ///< SOFTGPU_GDR: none, peer or dmabuf
  std::string ptxLibrary;                   ///< SOFTGPU_PTX_LIBRARY: a path, empty for the one beside libcuda.so.1
  std::string ptxCache;                     ///< SOFTGPU_PTX_CACHE: a folder, empty for none
};

/// Reads the environment. Values it does not understand are named on stderr and ignored.
Settings readSettings();

}  // namespace tutti::softgpu
