// What settings there are: unknown names, documents.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/settings/params.h"
#include "base/settings/params_check.h"

namespace tutti {

namespace {

struct Row {
  std::string_view group;
  std::string_view name;
  std::string fallback;
  param::Check check;
  std::string_view help;
  bool perComm;
};

std::string shown(const std::string& text) {
  return text.empty() ? "unset" : text;
}
std::string shown(bool flag) {
  return flag ? "1" : "0";
}
std::string shown(std::int64_t number) {
  return std::to_string(number);
}
std::string shown(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "unset";
}

std::vector<Row> allRows() {
  std::vector<Row> rows;
  const Params defaults;
  using namespace param;
#define GROUP(Struct, field, title)     \
  {                                     \
    const auto& group = defaults.field; \
    const std::string_view where = title;
#define PARAM(type, field, name, fallback, check, help) \
  rows.push_back({where, name, shown(group.field), check, help, false});
#define PARAM_PER_COMM(type, field, name, fallback, check, help) \
  rows.push_back({where, name, shown(group.field), check, help, true});
#define END_GROUP(Struct, field) }
#include "base/settings/params.def"  // NOLINT(bugprone-suspicious-include)
  return rows;
}

constexpr std::array kLater{
#define LATER(name) std::string_view(#name),
#define OBSOLETE(name)
#define FOREIGN(name)
#include "base/settings/params_known.def"  // NOLINT(bugprone-suspicious-include)
};
constexpr std::array kObsolete{
#define LATER(name)
#define OBSOLETE(name) std::string_view(#name),
#define FOREIGN(name)
#include "base/settings/params_known.def"  // NOLINT(bugprone-suspicious-include)
};
constexpr std::array kForeign{
#define LATER(name)
#define OBSOLETE(name)
#define FOREIGN(name) std::string_view(#name),
#include "base/settings/params_known.def"  // NOLINT(bugprone-suspicious-include)
};
constexpr std::array<std::string_view, 3> kOlder{"NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS", "NCCL_IB_GDR_LEVEL"};

/// Families of names that plugins and test programs own.
constexpr std::array<std::string_view, 11> kForeignPrefixes{
    "TUTTI_TEST_", "NCCL_TESTS_",  "NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_", "NCCL_IBEXT_", "NCCL_INSPECTOR_",
    "NCCL_OFI_",   "NCCL_PLUGIN_", "NCCL_PROFILE_", "NCCL_SHARP_",         "NCCL_UCX_"};

std::vector<std::string_view> knownNames() {
  std::vector<std::string_view> names(kLater.begin(), kLater.end());
  names.insert(names.end(), kObsolete.begin(), kObsolete.end());
  names.insert(names.end(), kForeign.begin(), kForeign.end());
  names.insert(names.end(), kOlder.begin(), kOlder.end());
  for (const Row& row : allRows()) names.push_back(row.name);
  return names;
}

bool foreignFamily(std::string_view name) {
  return std::any_of(kForeignPrefixes.begin(), kForeignPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Levenshtein's distance.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string nameList(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string_view name : names) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text + "\n";
}

/// For a cell of a table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

constexpr std::string_view kIntro =
    R"(# Settings

Made from `src/base/settings/params.def` by `tutti-info --env --markdown`; do not edit.

## Where they come from

1. The environment of the process.
2. The file that `NCCL_CONF_FILE` names, or else `~/.nccl.conf`.
3. `/etc/nccl.conf`.

The first that has a name wins. An env plugin, if there is one, answers in place of all three (below). Files hold one `NAME=VALUE` a line, split at the first `=`; a line that starts with `#` is a
comment. Blanks count, there are no quotes. Lines are cut at 4096 bytes, names and values at 1023. At its start
(the first `ncclGetUniqueId` or init) the library puts the settings of files, whatever their names, into the environment of
the process, where that has no such name: plugins that are loaded later, other libraries and child processes see them, as
users of these files expect. An application whose threads call `getenv` at that moment has to make this first call before it
starts them. A settings file that cannot be used (it is a directory or a FIFO, it has more than 1 MiB, it may not be read) is
ignored, and a warning says why.

## Env plugins

A library that exports `ncclEnvPlugin_v2` or `ncclEnvPlugin_v1` (`include/nccl_env.h`) answers for every setting on this page
in place of the environment: what it does not know is not set. Once in a process, before the first setting is read (by
`ncclGetUniqueId`, an init or `ncclParam…`), and after the settings of files were passed on, the library that
`NCCL_ENV_PLUGIN` names is loaded and initialised; unset or empty, `libnccl-env.so` where there is one. That name is read from
the environment and the files alone, and so is `NCCL_DEBUG` with its family until then: what the log says while the plugin is
loaded follows the environment. A plugin that is named and cannot be loaded is told by a warning, and the environment answers.
Where a plugin's init fails the call fails, and so do later ones; where it does not return, or the library that is named
does not come out of its constructors, a warning names it after `TUTTI_STALL_SEC` seconds, as the environment says.
`finalize` comes once, when the process ends; after that the environment answers.

Files that other settings name are read whole before they are used, and must be regular files. What is written to a place that
a setting names (debug lines, dumps of topologies and graphs) never makes the library wait for long: a FIFO that nobody reads
or a disk without room is an error or, for debug lines, one warning.

Everything is read once, at the first use, but for the settings marked *each communicator*, which are read again whenever a
communicator is made. What a network plugin puts into the environment in its init counts from then on, for the communicator
that it was begun for and for later ones, whatever the setting; only what that communicator's configuration and bootstrap have
taken stays (docs/network.md, "Networks").

## How values are read

Numbers: decimal, `0x` hexadecimal or `0` octal, with or without sign; what follows the number is ignored, and **text that is no
number counts as 0**. An empty value is unset. A value that is not allowed gives the default with an INFO line, or the nearest
allowed one where the table says so. For settings of 0 or 1 every number but 0 counts as 1.

An unknown `NCCL_*` or `TUTTI_*` name has no effect; a warning (see below) names it once, with the nearest known name, and so
does `tutti-info --env`.

## What is printed

Lines have the shapes of NCCL 2.30. Errors of the system, of CUDA, of peers and of the library itself have the class `ERROR`:
the layout of a warning with `NCCL ERROR`, printed at every level, also where `NCCL_DEBUG` is unset. Mistakes in a call
(`ncclInvalidArgument`, `ncclInvalidUsage`) and warnings have the class `WARN`: printed from `NCCL_DEBUG=WARN` up, but for
reports of stalls that last (`TUTTI_STALL_ALARM_SEC`).
`ncclGetLastError` has the text of either. A line has at most 1024 bytes.
)";

}  // namespace

std::string param::describe(const param::Check& check) {
  switch (check.kind) {
    case param::Check::Kind::Any:
      return "";
    case param::Check::Kind::Between:
      return fmt::format("{} to {}", check.lo, check.hi);
    case param::Check::Kind::Clamp:
      return fmt::format("{} to {}, else the nearest", check.lo, check.hi);
    case param::Check::Kind::Words:
    case param::Check::Kind::Exactly:
      break;
  }
  std::string text;
  for (const char c : check.list) text += c == ',' ? std::string(", ") : std::string(1, c);
  return text + (check.kind == param::Check::Kind::Words ? " (any case)" : " (this case)");
}

std::string nearestSetting(std::string_view name) {
  std::string_view best;
  std::size_t fewest = std::max<std::size_t>(2, name.size() / 4) + 1;
  for (const std::string_view known : knownNames()) {
    const std::size_t edits = editDistance(name, known);
    if (edits >= fewest) continue;
    fewest = edits;
    best = known;
  }
  return std::string(best);
}

std::vector<std::string> unknownSettings(const EnvReader& env) {
  const auto known = knownNames();
  std::vector<std::string> sentences;
  for (const std::string& name : env.names()) {
    if (!name.starts_with("NCCL_") && !name.starts_with("TUTTI_")) continue;
    if (foreignFamily(name) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = nearestSetting(name);
    const std::string hint = nearest.empty() ? std::string() : fmt::format(" Did you mean {}?", nearest);
    sentences.push_back(fmt::format("{} is not a setting that tutti knows and has no effect.{}", name, hint));
  }
  return sentences;
}

std::string paramsMarkdown() {
  std::string text(kIntro);
  std::string_view group;
  for (const Row& row : allRows()) {
    if (row.group != group) {
      group = row.group;
      text += fmt::format("\n## {}\n\n| name | default | allowed | meaning |\n|---|---|---|---|\n", group);
    }
    text += fmt::format("| `{}` | {} | {} | {}{} |\n", row.name, cell(row.fallback), cell(param::describe(row.check)),
                        cell(row.help), row.perComm ? " *(each communicator)*" : "");
  }
  text += "\n## Accepted, no effect yet\n\n" + nameList({kLater.begin(), kLater.end()});
  text += "\n## Accepted, obsolete\n\n" + nameList({kObsolete.begin(), kObsolete.end()});
  return text + "\nThe software GPU has settings of its own, named `SOFTGPU_*`: see `softgpu.md`.\n";
}

std::string paramsTable(const EnvReader& env) {
  std::string text;
  for (const Row& row : allRows()) {
    const auto value = env.get(row.name);
    const std::string now = value ? " = " + (isSecret(row.name) ? std::string(kHidden) : *value) : std::string();
    text += fmt::format("{}{}  [default {}]\n    {}\n", row.name, now, row.fallback, row.help);
  }
  return text;
}

}  // namespace tutti
