// A kernel in flight: blocks admitted as slots become free, run in turn. Where threads never wait for one another,
// blocks are run whole, one after the other.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "softgpu/exec/block.h"
#include "softgpu/exec/task.h"

namespace tutti::softgpu {

class Context;
struct Marker;

class KernelTask : public Task {
 public:
  KernelTask(const KernelOperation& kernel, Context& context);
  Step step(Engine& engine) override;
  void abandon() override;

 private:
  bool admit(Engine& engine);
  bool hasRoom() const;
  bool makeRoom(bool progress);
  bool runResident(Engine& engine);
  Step runWhole(Engine& engine);
  /// The last block has begun, or will not.
  void tellBegun();
  Step fail(Engine& engine, CUresult error, const std::string& why);

  const KernelOperation kernel_;
  Context& context_;
  std::vector<std::unique_ptr<Block>> resident_;
  std::uint32_t nextBlock_ = 0;
  std::size_t crowd_;                     ///< threads that may be resident while others wait to come in
  int passesSinceAnEnd_ = 0;              ///< of a block
  std::vector<std::max_align_t> shared_;  ///< of blocks that are run whole
  std::shared_ptr<Marker> begun_;         ///< null: nobody asks, or was told
};

}  // namespace tutti::softgpu
