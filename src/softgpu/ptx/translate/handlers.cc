#include "softgpu/ptx/translate/handlers.h"

#include <set>

namespace tutti::softgpu::ptx {

bool isKnownModifier(std::string_view modifier) {
  static const std::set<std::string_view> kWords = {
      // arithmetic
      "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", "rs", "ftz", "sat", "satfinite", "relu", "approx",
      "full", "lo", "hi", "wide", "cc", "NaN", "xorsign", "abs", "oob", "noftz", "pack", "scaled",
      // bits
      "l", "r", "clamp", "wrap", "shiftamt", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16",
      // comparisons and properties
      "eq", "ne", "lt", "le", "gt", "ge", "ls", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", "and",
      "or", "xor", "finite", "infinite", "number", "notanumber", "normal", "subnormal", "BoolOp",
      // spaces, orders, scopes, vectors and caches
      "to", "global", "shared", "local", "param", "const", "weak", "volatile", "relaxed", "acquire", "release",
      "acq_rel", "sc", "mmio", "cta", "cluster", "gpu", "sys", "gl", "v2", "v4", "v8", "nc", "ca", "cg", "cs", "lu",
      "cv", "wb", "wt", "L1", "L2", "unified", "level", "proxy", "alias", "generic", "async", "mbarrier_init",
      "tensormap", "fractional", "range", "evict_last", "evict_first", "evict_normal", "evict_unchanged", "no_allocate",
      "cache_hint", "cvta", "bulk", "tensor", "mbarrier", "commit_group", "wait_group", "wait_all", "noinc", "arrive",
      "wait", "launch_dependents", "init", "inval", "arrive_drop", "expect_tx", "complete_tx", "noComplete",
      "test_wait", "try_wait", "parity", "pending_count", "bulk_group", "read", "multicast", "prefetch", "inc", "dec",
      "min", "max", "add", "exch", "cas",
      // control and meetings
      "uni", "idx", "sync", "aligned", "warp", "red", "popc", "up", "down", "bfly", "all", "any", "ballot", "u",
      "isspacep"};
  if (typeOf(modifier).has_value()) return true;
  return kWords.contains(modifier.substr(0, modifier.find(':')));
}

Handler handlerOf(std::string_view opcode) {
  static const Handlers kHandlers = [] {
    Handlers all;
    addIntegerInstructions(all);
    addBitInstructions(all);
    addCarryInstructions(all);
    addArithmeticInstructions(all);
    addFloatInstructions(all);
    addCompareInstructions(all);
    addConvertInstructions(all);
    addMoveInstructions(all);
    addMemoryInstructions(all);
    addAtomicInstructions(all);
    addAsynchronousInstructions(all);
    addControlInstructions(all);
    addCallInstructions(all);
    addMeetingInstructions(all);
    return all;
  }();
  const auto found = kHandlers.find(opcode);
  return found == kHandlers.end() ? nullptr : found->second;
}

}  // namespace tutti::softgpu::ptx
