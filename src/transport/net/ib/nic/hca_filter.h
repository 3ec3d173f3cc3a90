// NCCL_IB_HCA: which ports of which NICs are used. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tutti::net::ib {

/// Marks the plane of a fused device, whose low bits are the planes of its parts.
inline constexpr int kFusedPlane = 0x4000;

/// The list of NCCL_IB_HCA: `[^][=]name[:port[:rail[:plane]]],…`. `^` in front: all but these; `=` (behind it): whole
/// names, else beginnings. An empty number is unset; no list: all ports.
class HcaFilter {
 public:
  /// What the list says of a port.
  struct Choice {
    int rail = -1;   ///< -1: unset
    int plane = -1;  ///< the same
  };

  HcaFilter() = default;
  /// Errors: ncclInvalidUsage naming the part that is no number, or a plane that cannot be one.
  static Result<HcaFilter> parse(std::string_view text);

  /// What becomes of a port.
  struct Verdict {
    bool used = false;
    Choice choice;
    std::string part;  ///< the first part that fits it, which also says its rail and plane; "": none does
  };
  Verdict judge(std::string_view device, int port) const;

 private:
  struct Part {
    std::string text;  ///< as it stands in the list
    std::string name;
    int port = -1;  ///< -1: all
    Choice choice;
  };
  static Result<Part> parsePart(std::string_view text);
  Status checkPlanes() const;
  bool fits(const Part& part, std::string_view device, int port) const;

  bool excludes_ = false;
  bool exact_ = false;
  std::vector<Part> parts_;
};

}  // namespace tutti::net::ib
