#include "comm/state/abort_word.h"

namespace tutti::comm {

Result<std::unique_ptr<AbortWord>> AbortWord::create(const gpu::Device& device, Abort& abort) {
  ASSIGN(gpu::PinnedBuffer memory, gpu::PinnedBuffer::create(device, sizeof(std::uint32_t), "abort word"));
  std::unique_ptr<AbortWord> created(new AbortWord(std::move(memory), abort));
  abort.addMirror(created->word());
  return created;
}

AbortWord::~AbortWord() {
  abort_.removeMirror(word());
}

}  // namespace tutti::comm
