#include "transport/net/ib/nic/hca_filter.h"

#include <charconv>
#include <set>

#include "base/log.h"

namespace tutti::net::ib {

namespace {

constexpr std::size_t kMostParts = 32;
/// Fused devices have a bit for each.
constexpr std::size_t kMostPlanes = 13;

/// Up to the next `separator`, which is taken away as well.
std::string_view takeUpTo(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

Result<int> numberOf(std::string_view text, std::string_view part) {
  if (text.empty()) return -1;
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 0) return number;
  return fail(ncclInvalidUsage,
              "NCCL_IB_HCA: '{}' in '{}' is no number; the form is [^][=]name[:port[:rail[:plane]]],...", text, part);
}

}  // namespace

Result<HcaFilter::Part> HcaFilter::parsePart(std::string_view text) {
  std::string_view rest = text;
  Part part{.text = std::string(text), .name = std::string(takeUpTo(rest, ':'))};
  ASSIGN(part.port, numberOf(takeUpTo(rest, ':'), text));
  ASSIGN(part.choice.rail, numberOf(takeUpTo(rest, ':'), text));
  ASSIGN(part.choice.plane, numberOf(rest, text));
  if (part.choice.plane >= 0 && (part.choice.plane & kFusedPlane) != 0) {
    return fail(ncclInvalidUsage, "NCCL_IB_HCA: the plane {} in '{}' has the bit {:#x}, which marks fused NICs",
                part.choice.plane, text, kFusedPlane);
  }
  return part;
}

Result<HcaFilter> HcaFilter::parse(std::string_view text) {
  HcaFilter filter;
  if (text.starts_with('^')) {
    filter.excludes_ = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    filter.exact_ = true;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const std::string_view part = takeUpTo(text, ',');
    if (part.empty()) continue;
    if (filter.parts_.size() == kMostParts) {
      return fail(ncclInvalidUsage, "NCCL_IB_HCA: there are more than {} parts", kMostParts);
    }
    ASSIGN(Part parsed, parsePart(part));
    filter.parts_.push_back(std::move(parsed));
  }
  TRY(filter.checkPlanes());
  return filter;
}

Status HcaFilter::checkPlanes() const {
  std::set<int> planes;
  for (const Part& part : parts_) {
    if (part.choice.plane >= 0) planes.insert(part.choice.plane);
  }
  if (planes.size() <= kMostPlanes) return {};
  return fail(ncclInvalidUsage, "NCCL_IB_HCA: there are {} different planes, at most {} can be told apart",
              planes.size(), kMostPlanes);
}

bool HcaFilter::fits(const Part& part, std::string_view device, int port) const {
  if (part.port >= 0 && part.port != port) return false;
  return exact_ ? device == part.name : device.starts_with(part.name);
}

HcaFilter::Verdict HcaFilter::judge(std::string_view device, int port) const {
  for (const Part& part : parts_) {
    if (!fits(part, device, port)) continue;
    return {.used = !excludes_, .choice = excludes_ ? Choice{} : part.choice, .part = part.text};
  }
  return {.used = excludes_ || parts_.empty()};
}

}  // namespace tutti::net::ib
