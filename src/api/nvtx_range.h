// Ranges for profilers that listen to NVTX (Nsight Systems): each call of the API is one, in the domain "NCCL".
#pragma once

#include <cstdint>
#include <string_view>

namespace tutti::comm {
struct Op;
}

namespace tutti::api {

/// What a range tells of a call that moves data.
struct NvtxCall {
  std::uint64_t commId = 0;  ///< equal on all ranks
  std::uint64_t bytes = 0;   ///< count times the size of an element
  std::uint64_t count = 0;
  std::int32_t datatype = 0;  ///< ncclDataType_t
  std::int32_t redOp = -1;    ///< ncclRedOp_t; -1: the call reduces nothing
  std::int32_t root = -1;     ///< root, or the peer of a message; -1: the call has none
};

/// The call of a communicator with this id.
NvtxCall nvtxCall(const comm::Op& op, std::uint64_t commId);

/// Whether anybody listens. Asked first, it looks for a tool (NVTX_INJECTION64_PATH); only where there is one
/// NCCL_NVTX_DISABLE is read. Afterwards a load. Any thread.
bool nvtxIsOn();

/// A call of the API on this thread, from here to the end of its block. Nothing where nobody listens.
class NvtxRange {
 public:
  /// `function`: the exported name; its text stays for ever and ends with a zero.
  explicit NvtxRange(std::string_view function) : open_(nvtxIsOn()) {
    if (open_) push(function, nullptr);
  }
  /// `call`: makes the NvtxCall, asked for only where somebody listens.
  template <class Call>
  NvtxRange(std::string_view function, Call&& call) : open_(nvtxIsOn()) {
    if (!open_) return;
    const NvtxCall payload = call();
    push(function, &payload);
  }
  ~NvtxRange() {
    if (open_) pop();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  static void push(std::string_view function, const NvtxCall* call);
  static void pop();

  const bool open_;
};

}  // namespace tutti::api
