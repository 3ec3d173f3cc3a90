#include "comm/tuning/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <span>

#include "base/log.h"
#include "device/kernels/kernel_name.h"

namespace tutti::comm {

namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool sameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

/// Takes the text up to `separator` off the front of `rest`.
std::string_view takeUntil(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view head = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return head;
}

std::optional<int> funcFrom(std::string_view word) {
  for (int f = 0; f < kTunedFuncs; ++f) {
    if (sameWord(word, device::funcName(static_cast<device::Func>(f)))) return f;
  }
  return std::nullopt;
}

/// One of the two settings: its names, and where what it allows is kept.
struct Grammar {
  const char* variable;
  std::span<const char* const> names;

  std::optional<std::size_t> indexOf(std::string_view word) const {
    const auto found = std::find_if(names.begin(), names.end(), [&](const char* name) { return sameWord(word, name); });
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
  }
  std::string allNames() const {
    std::string text;
    for (const char* name : names) text.append(text.empty() ? "" : ", ").append(name);
    return text;
  }
};

constexpr const char* kAlgorithmNames[] = {
    device::algorithmName(device::Algorithm::Tree),          device::algorithmName(device::Algorithm::Ring),
    device::algorithmName(device::Algorithm::CollNetDirect), device::algorithmName(device::Algorithm::CollNetChain),
    device::algorithmName(device::Algorithm::Nvls),          device::algorithmName(device::Algorithm::NvlsTree),
    device::algorithmName(device::Algorithm::Pat),           device::algorithmName(device::Algorithm::OneShot),
    device::algorithmName(device::Algorithm::Direct)};
static_assert(std::size(kAlgorithmNames) == device::kAlgorithms);

constexpr const char* kProtocolNames[] = {device::protocolName(device::Protocol::LL),
                                          device::protocolName(device::Protocol::LL128),
                                          device::protocolName(device::Protocol::Simple)};

constexpr Grammar kAlgoGrammar{"NCCL_ALGO", kAlgorithmNames};
constexpr Grammar kProtoGrammar{"NCCL_PROTO", kProtocolNames};

/// Replaces `row` by what the list of names says.
Status readList(const Grammar& grammar, std::string_view list, std::span<Permission> row) {
  const bool inverted = !list.empty() && list.front() == '^';
  if (inverted) list.remove_prefix(1);
  std::array<bool, device::kAlgorithms> named{};
  bool any = false;
  while (!list.empty()) {
    const std::string_view word = takeUntil(list, ',');
    if (word.empty()) continue;
    const auto index = grammar.indexOf(word);
    if (!index) {
      return fail(ncclInvalidUsage, "{}: unknown name \"{}\"; known are {}", grammar.variable, word,
                  grammar.allNames());
    }
    named[*index] = true;
    any = true;
  }
  if (!any) {
    return fail(ncclInvalidUsage, "{}: a list without names; known are {}", grammar.variable, grammar.allNames());
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!inverted) row[i] = named[i] ? Permission::Yes : Permission::No;
    if (inverted && named[i]) row[i] = Permission::No;
  }
  return {};
}

/// The whole value: `rows` hold the defaults and get the result.
template <std::size_t N>
Status readValue(const Grammar& grammar, std::string_view value,
                 std::array<std::array<Permission, N>, kTunedFuncs>& rows) {
  const std::array<Permission, N> defaults = rows.front();
  bool first = true;
  while (!value.empty()) {
    std::string_view entry = takeUntil(value, ';');
    if (entry.empty()) continue;
    std::optional<int> func;
    if (entry.find(':') != std::string_view::npos) {
      const std::string_view word = takeUntil(entry, ':');
      func = funcFrom(word);
      if (!func) {
        return fail(ncclInvalidUsage,
                    "{}: unknown function \"{}\"; known are Broadcast, Reduce, AllGather, "
                    "ReduceScatter, AllReduce",
                    grammar.variable, word);
      }
    } else if (!first) {
      return fail(ncclInvalidUsage,
                  "{}: \"{}\" names no function; only the first entry may leave it out, as in "
                  "\"Ring;AllReduce:Tree\"",
                  grammar.variable, entry);
    }
    first = false;
    std::array<Permission, N> row = defaults;
    TRY(readList(grammar, entry, row));
    for (int f = 0; f < kTunedFuncs; ++f) {
      if (!func || *func == f) rows[static_cast<std::size_t>(f)] = row;
    }
  }
  return {};
}

}  // namespace

Result<TuningFilter> parseTuningFilter(std::string_view algo, std::string_view proto) {
  TuningFilter filter;
  filter.algoText = algo;
  filter.protoText = proto;
  for (auto& row : filter.algorithms) {
    row.fill(Permission::Yes);
    row[static_cast<std::size_t>(device::Algorithm::Pat)] = Permission::Auto;
  }
  for (auto& row : filter.protocols) row = {Permission::Yes, Permission::Auto, Permission::Yes};
  TRY(readValue(kAlgoGrammar, algo, filter.algorithms));
  TRY(readValue(kProtoGrammar, proto, filter.protocols));
  return filter;
}

std::vector<std::string> filterMatrix(const TuningFilter& filter) {
  std::string head = fmt::format("{:>13} |", "Function");
  for (const char* name : kProtocolNames) head += fmt::format(" {:>6}", name);
  head += " |";
  for (const char* name : kAlgorithmNames) head += fmt::format(" {:>13}", name);
  std::vector<std::string> lines{"Enabled NCCL Func/Proto/Algo Matrix:", head};
  for (std::size_t f = 0; f < kTunedFuncs; ++f) {
    std::string line = fmt::format("{:>13} |", device::funcName(static_cast<device::Func>(f)));
    for (const Permission p : filter.protocols[f]) line += fmt::format(" {:>6}", static_cast<int>(p));
    line += " |";
    for (const Permission p : filter.algorithms[f]) line += fmt::format(" {:>13}", static_cast<int>(p));
    lines.push_back(line);
  }
  return lines;
}

std::optional<std::size_t> algorithmFrom(std::string_view word) {
  return kAlgoGrammar.indexOf(word);
}
std::optional<std::size_t> protocolFrom(std::string_view word) {
  return kProtoGrammar.indexOf(word);
}
std::string allAlgorithmNames() {
  return kAlgoGrammar.allNames();
}
std::string allProtocolNames() {
  return kProtoGrammar.allNames();
}

std::string_view logName(device::Algorithm algorithm) {
  switch (algorithm) {
    case device::Algorithm::Tree:
      return "TREE";
    case device::Algorithm::Ring:
      return "RING";
    case device::Algorithm::CollNetDirect:
      return "COLLNET_DIRECT";
    case device::Algorithm::CollNetChain:
      return "COLLNET_CHAIN";
    case device::Algorithm::Nvls:
      return "NVLS";
    case device::Algorithm::NvlsTree:
      return "NVLS_TREE";
    case device::Algorithm::Pat:
      return "PAT";
    case device::Algorithm::OneShot:
      return "ONESHOT";
    case device::Algorithm::Direct:
      return "DIRECT";
  }
  return "?";
}

std::string_view logName(device::Protocol protocol) {
  switch (protocol) {
    case device::Protocol::LL:
      return "LL";
    case device::Protocol::LL128:
      return "LL128";
    case device::Protocol::Simple:
      return "SIMPLE";
  }
  return "?";
}

}  // namespace tutti::comm
