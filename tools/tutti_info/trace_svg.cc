#include "trace_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "trace_summary.h"

namespace tutti::tool {

namespace {

using trace::Kind;
using trace::Record;

constexpr double kLeft = 150, kWidth = 800, kRow = 46, kTop = 48, kBar = 13;

struct Scale {
  std::uint64_t begin = 0;
  std::uint64_t end = 1;
  double x(std::uint64_t time) const {
    const std::uint64_t in = std::clamp(time, begin, end);
    return kLeft + kWidth * static_cast<double>(in - begin) / static_cast<double>(end - begin);
  }
};

std::string bar(const Scale& scale, double y, std::uint64_t from, std::uint64_t to, std::string_view color,
                const std::string& title) {
  const double x = scale.x(from);
  const double width = std::max(scale.x(to) - x, 0.8);
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>\n", x, y,
      width, kBar, color, title);
}

/// The second line of a rank: requests of the network within the operation.
std::string networkBars(const Job& job, const OperationPart& part, std::uint64_t comm, const Scale& scale, double y) {
  std::string text;
  const ProcessTrace& process = job.processes[part.process];
  for (const Record& record : process.records) {
    if (record.kind != Kind::NetSend && record.kind != Kind::NetRecv) continue;
    const TracedComm* const of = process.comm(record.comm);
    if (of == nullptr || of->hash != comm || of->rank != part.rank) continue;
    const std::uint64_t begin = job.at(part.process, record.begin);
    const std::uint64_t end = job.at(part.process, record.end);
    if (end < scale.begin || begin > scale.end) continue;
    const bool sends = record.kind == Kind::NetSend;
    text += bar(scale, y, sends ? begin : end, end, sends ? "#c77d1a" : "#8a4fbd",
                fmt::format("{} step {}, {} bytes", sends ? "send" : "receive", record.number, record.b));
  }
  return text;
}

std::string partRow(const Job& job, const Operation& operation, const OperationPart& part, const Scale& scale,
                    double y) {
  const bool late = operation.parts.size() > 1 && &part == &operation.parts[operation.last()];
  std::string text =
      fmt::format("<text x=\"8\" y=\"{:.1f}\">rank {}{}</text>\n", y + kBar, part.rank, late ? ", last" : "");
  const std::uint64_t launched = std::max(part.launched, part.asked);
  text += bar(scale, y, part.asked, launched, "#4a78b5", "call to launch, " + timeText(double(launched - part.asked)));
  if (part.kernelEnd != 0) {
    const std::uint64_t all = std::clamp(operation.allLaunched(), part.kernelBegin, part.kernelEnd);
    const std::uint64_t own = std::clamp(launched, part.kernelBegin, all);
    if (all > own)
      text += bar(scale, y, own, all, "#d9d2c0", "waits for the last rank, " + timeText(double(all - own)));
    text += bar(scale, y, all, part.kernelEnd, "#3d9970", "moves data, " + timeText(double(part.kernelEnd - all)));
  }
  return text + networkBars(job, part, operation.comm, scale, y + kBar + 3);
}

}  // namespace

const Operation* findOperation(const Job& job, const std::string& wish) {
  const std::size_t colon = wish.find(':');
  const std::string function = colon == std::string::npos ? "" : wish.substr(0, colon);
  const std::string digits = colon == std::string::npos ? wish : wish.substr(colon + 1);
  std::uint32_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return nullptr;
  const Operation* best = nullptr;
  for (const Operation& operation : job.operations) {
    if (operation.number != number || (!function.empty() && operation.function != function)) continue;
    if (best == nullptr || operation.nRanks > best->nRanks) best = &operation;
  }
  return best;
}

std::string svgOf(const Job& job, const Operation& operation) {
  Scale scale{UINT64_MAX, 0};
  for (const OperationPart& part : operation.parts) {
    scale.begin = std::min(scale.begin, part.asked);
    scale.end = std::max({scale.end, part.asked, part.launched, part.kernelEnd});
  }
  scale.end = std::max(scale.end, scale.begin + 1);
  const double height = kTop + kRow * static_cast<double>(operation.parts.size()) + 34;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kLeft + kWidth + 20, height);
  text += fmt::format("<text x=\"8\" y=\"20\" font-size=\"15\">{} number {}: {}, {} ranks, {}</text>\n",
                      operation.function, operation.number, bytesText(operation.bytes), operation.nRanks,
                      timeText(double(scale.end - scale.begin)));
  double y = kTop;
  for (const OperationPart& part : operation.parts) {
    text += partRow(job, operation, part, scale, y);
    y += kRow;
  }
  text += fmt::format(
      "<text x=\"8\" y=\"{:.1f}\">blue: call to launch; grey: waits for the last rank; green: moves data; orange and "
      "violet: sends and receives over the network</text>\n</svg>\n",
      y + 12);
  return text;
}

}  // namespace tutti::tool
