#include "differential/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "bench/datatypes.h"

namespace differential {
namespace {

/// The byte is one of these, of this operation.
struct Owner {
  const Operation* operation = nullptr;
  const char* what = "";
  Span span;
};

/// The buffers of one operation at one rank, results first.
std::vector<Owner> buffersOf(const Operation& operation, int rank) {
  std::vector<Owner> owners;
  if (operation.func == Func::Messages) {
    for (const Message& message : operation.messages) {
      if (message.to == rank) owners.push_back({&operation, "a received message", message.target});
      if (message.from == rank) owners.push_back({&operation, "a message that was sent", message.source});
    }
    return owners;
  }
  const auto r = static_cast<std::size_t>(rank);
  owners.push_back({&operation, "the result", operation.recv[r]});
  owners.push_back({&operation, "the input", operation.send[r]});
  if (!operation.scalar.empty()) owners.push_back({&operation, "the factor", operation.scalar[r]});
  return owners;
}

/// All buffers of a rank of all ranks.
std::vector<Owner> buffers(const Round& round, const Layout& layout, int rank) {
  std::vector<Owner> owners;
  for (const Group& group : round.groups) {
    for (const Operation& operation : group.operations) {
      const int member = layout.rankIn(operation.comm, rank);
      if (member < 0) continue;
      for (const Owner& owner : buffersOf(operation, member)) owners.push_back(owner);
    }
  }
  return owners;
}

std::string bytesAt(const std::vector<std::uint8_t>& memory, std::size_t place, std::size_t count) {
  std::string text;
  for (std::size_t i = place; i < std::min(memory.size(), place + count); ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", memory[i]);
    text += byte;
  }
  return text;
}

/// The last operation that wrote the byte, or read it; failing both, the buffers on either side.
std::string blame(const Round& round, const Layout& layout, int rank, std::size_t place) {
  std::string text;
  const Owner* before = nullptr;
  const std::vector<Owner> owners = buffers(round, layout, rank);
  for (const Owner& owner : owners) {
    if (owner.span.holds(place)) {
      const std::size_t element = (place - owner.span.offset) / bench::typeSize(owner.operation->type);
      text += std::string("\n  in ") + owner.what + ", element " + std::to_string(element) + ", of " +
              describe(*owner.operation);
    }
    const std::size_t end = owner.span.offset + owner.span.bytes;
    if (end <= place && (before == nullptr || before->span.offset + before->span.bytes < end)) before = &owner;
  }
  if (!text.empty()) return text;
  if (before == nullptr) return "\n  in front of all buffers";
  return "\n  in no buffer, " + std::to_string(place - before->span.offset - before->span.bytes) + " bytes behind " +
         before->what + " of " + describe(*before->operation);
}

bool isNear(const Inexact& inexact, std::size_t i, double got) {
  const double want = inexact.want[i];
  return std::fabs(got - want) <= bench::tolerance(inexact.type, inexact.ranks + 1) * std::fabs(want);
}

std::string say(const Round& round, const Layout& layout, int rank, std::size_t place, const std::string& difference) {
  return "rank " + std::to_string(rank) + ", round " + std::to_string(round.number) +
         (round.capture == Capture::None ? "" : ", captured") + ", byte " + std::to_string(place) + ": " + difference +
         blame(round, layout, rank, place);
}

}  // namespace

std::string findWrong(const Round& round, const Layout& layout, int rank, std::vector<std::uint8_t> got) {
  const auto& want = round.after[static_cast<std::size_t>(rank)];
  for (const Inexact& inexact : round.inexact) {
    if (inexact.rank != rank) continue;
    for (std::size_t i = 0; i < inexact.want.size(); ++i) {
      const double value = bench::decode(inexact.type, got.data() + inexact.span.offset, i);
      if (isNear(inexact, i, value)) continue;
      const std::size_t place = inexact.span.offset + i * bench::typeSize(inexact.type);
      return say(round, layout, rank, place, std::to_string(value) + " instead of " + std::to_string(inexact.want[i]));
    }
    std::copy_n(want.begin() + static_cast<std::ptrdiff_t>(inexact.span.offset), inexact.span.bytes,
                got.begin() + static_cast<std::ptrdiff_t>(inexact.span.offset));
  }
  const auto first = std::mismatch(want.begin(), want.end(), got.begin(), got.end()).first;
  if (first == want.end()) return "";
  const auto place = static_cast<std::size_t>(first - want.begin());
  return say(round, layout, rank, place, bytesAt(got, place, 8) + " instead of " + bytesAt(want, place, 8));
}

}  // namespace differential
