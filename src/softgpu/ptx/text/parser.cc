#include "softgpu/ptx/text/parser.h"

#include <algorithm>
#include <utility>

#include "softgpu/ptx/text/declarations.h"
#include "softgpu/ptx/text/instructions.h"
#include "softgpu/ptx/text/words.h"

namespace tutti::softgpu::ptx {
namespace {

/// Directives that say how a function is to be compiled or launched, and are followed by numbers.
bool acceptTuning(Words& words, Function& function) {
  static constexpr std::string_view kNumbers[] = {"maxntid",           "reqntid",        "minnctapersm", "maxnctapersm",
                                                  "reqnctapercluster", "maxclusterrank", "maxnreg"};
  static constexpr std::string_view kBare[] = {"noreturn", "explicitcluster", "blocksareclusters"};
  if (words.peek().kind != Token::Kind::Directive) return false;
  const std::string name(words.peek().text);
  if (std::ranges::find(kBare, name) != std::end(kBare)) {
    words.take();
    return true;
  }
  if (name == "pragma") {
    words.skipStatement();
    return true;
  }
  if (std::ranges::find(kNumbers, name) == std::end(kNumbers)) return false;
  words.take();
  std::int64_t product = 1;
  do product *= words.expectInteger();
  while (words.acceptSign(','));
  if (name == "maxntid" || name == "reqntid") function.maxThreads = static_cast<std::uint32_t>(product);
  return true;
}

/// Line tables and sections of a debugger.
bool skipDebugging(Words& words) {
  if (words.acceptDirective("section")) {
    while (!words.atEnd() && !words.isSign('{')) words.take();
    while (!words.atEnd() && !words.isSign('}')) words.take();
    words.expectSign('}');
    return true;
  }
  if (!words.isDirective("file") && !words.isDirective("loc")) return false;
  // They end with their line.
  const int line = words.line();
  while (!words.atEnd() && words.line() == line) words.take();
  return true;
}

Statement label(Words& words, std::string name) {
  if (words.acceptDirective("branchtargets") || words.acceptDirective("calltargets")) {
    BranchTable table{std::move(name), {}};
    do table.targets.push_back(words.expectName());
    while (words.acceptSign(','));
    words.expectSign(';');
    return table;
  }
  if (words.acceptDirective("callprototype")) {
    Prototype prototype{std::move(name), {}};
    if (words.isSign('(')) prototype.signature.results = parseParameters(words);
    words.expectName();
    if (words.isSign('(')) prototype.signature.parameters = parseParameters(words);
    words.acceptDirective("noreturn");
    words.expectSign(';');
    return prototype;
  }
  return LabelMark{std::move(name)};
}

void parseBody(Words& words, std::vector<Statement>& body) {
  words.expectSign('{');
  for (int depth = 1; depth > 0;) {
    if (words.acceptSign('{')) {
      ++depth;
      body.emplace_back(ScopeMark{true});
    } else if (words.acceptSign('}')) {
      if (--depth > 0) body.emplace_back(ScopeMark{false});
    } else if (words.isDirective("pragma")) {
      words.skipStatement();
    } else if (skipDebugging(words)) {
      continue;
    } else if (words.peek().kind == Token::Kind::Directive) {
      for (Variable& variable : parseDeclaration(words)) body.emplace_back(std::move(variable));
    } else if (words.isSign('@')) {
      body.emplace_back(parseInstruction(words));
    } else {
      const Token name = words.peek();
      if (name.kind != Token::Kind::Name) words.fail("an instruction is missing");
      words.take();
      if (words.acceptSign(':')) {
        body.push_back(label(words, std::string(name.text)));
      } else {
        body.emplace_back(parseInstruction(words, name));
      }
    }
  }
}

void parseFunction(Words& words, bool entry, Program& program) {
  auto function = std::make_shared<Function>();
  function->entry = entry;
  function->line = words.line();
  if (words.isSign('(')) function->signature.results = parseParameters(words);
  function->name = words.expectName();
  if (words.isSign('(')) function->signature.parameters = parseParameters(words);
  while (acceptTuning(words, *function)) {
  }
  if (words.isSign('{')) {
    parseBody(words, function->body);
    function->defined = true;
    if (entry) program.entries.push_back(function->name);
  } else {
    words.expectSign(';');
  }
  auto& known = program.functions[function->name];
  if (known == nullptr || !known->defined) known = std::move(function);
}

}  // namespace

Program parseProgram(std::string_view text) {
  Words words(text);
  Program program;
  if (!words.acceptDirective("version")) words.fail("'.version' is missing: this is no PTX");
  words.take();
  while (!words.atEnd()) {
    if (words.acceptSign(';') || skipDebugging(words)) continue;
    if (words.acceptDirective("target")) {
      do words.expectName();
      while (words.acceptSign(','));
    } else if (words.acceptDirective("address_size")) {
      if (words.expectInteger() != 64) words.fail("addresses must have 64 bits");
    } else if (words.isDirective("alias") || words.isDirective("pragma")) {
      words.skipStatement();
    } else {
      const Linkage linkage = parseLinkage(words);
      if (words.acceptDirective("entry")) {
        parseFunction(words, true, program);
      } else if (words.acceptDirective("func")) {
        parseFunction(words, false, program);
      } else {
        for (Variable& variable : parseDeclaration(words, linkage)) program.variables.push_back(std::move(variable));
      }
    }
  }
  return program;
}

}  // namespace tutti::softgpu::ptx
