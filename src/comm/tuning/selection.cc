#include "comm/tuning/selection.h"

#include <algorithm>
#include <string>

#include "base/log.h"
#include "comm/tuning/filter.h"

namespace tutti::comm {

namespace {

constexpr std::uint32_t kEverything = Selection::bitOf(device::kAlgorithms, 0) - 1;

/// What the words of a list come to so far.
struct Words {
  Selection selection;        ///< its combinations: those that were named as such
  std::uint32_t columns = 0;  ///< combinations of the algorithms that stand alone
  std::uint32_t rows = 0;     ///< and of the protocols

  void addAlgorithm(std::size_t a) {
    selection.namedAlgorithms |= static_cast<std::uint16_t>(1U << a);
    for (std::size_t p = 0; p < device::kProtocols; ++p) columns |= Selection::bitOf(a, p);
  }
  void addProtocol(std::size_t p) {
    selection.namedProtocols |= static_cast<std::uint8_t>(1U << p);
    for (std::size_t a = 0; a < device::kAlgorithms; ++a) rows |= Selection::bitOf(a, p);
  }
  void addBoth(std::size_t a, std::size_t p) {
    selection.namedAlgorithms |= static_cast<std::uint16_t>(1U << a);
    selection.namedProtocols |= static_cast<std::uint8_t>(1U << p);
    selection.combinations |= Selection::bitOf(a, p);
  }
  std::uint32_t all() const {
    const bool both = columns != 0 && rows != 0;
    return selection.combinations | (both ? columns & rows : columns | rows);
  }
};

Status addWord(std::string_view word, Words& words) {
  const std::size_t slash = word.find('/');
  const auto algorithm = algorithmFrom(word.substr(0, slash));
  const auto protocol = protocolFrom(slash == std::string_view::npos ? word : word.substr(slash + 1));
  if (slash != std::string_view::npos && algorithm && protocol) {
    words.addBoth(*algorithm, *protocol);
  } else if (slash == std::string_view::npos && algorithm) {
    words.addAlgorithm(*algorithm);
  } else if (slash == std::string_view::npos && protocol) {
    words.addProtocol(*protocol);
  } else {
    return fail(
        ncclInvalidArgument,
        "algSelection: unknown name \"{}\"; known are the algorithms {}, the protocols {}, and both together as "
        "in \"Ring/LL\"",
        word, allAlgorithmNames(), allProtocolNames());
  }
  return {};
}

}  // namespace

Result<Selection> parseSelection(std::string_view text) {
  if (text.empty()) return Selection();
  const bool inverted = text.front() == '^';
  std::string_view rest = text.substr(inverted ? 1 : 0);
  Words words;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (end > 0) TRY(addWord(rest.substr(0, end), words));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::uint32_t named = words.all();
  Selection selection = words.selection;
  selection.combinations = inverted ? kEverything & ~named : named;
  if (named == 0 || selection.combinations == 0) {
    return fail(ncclInvalidArgument,
                "algSelection: \"{}\" leaves nothing; known are the algorithms {}, the protocols {}", text,
                allAlgorithmNames(), allProtocolNames());
  }
  // What is left of everything was not named.
  if (inverted) selection.namedAlgorithms = 0;
  if (inverted) selection.namedProtocols = 0;
  return selection;
}

}  // namespace tutti::comm
