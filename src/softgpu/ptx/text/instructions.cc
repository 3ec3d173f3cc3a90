#include "softgpu/ptx/text/instructions.h"

#include "softgpu/ptx/text/constants.h"

#include <string>
#include <utility>

namespace tutti::softgpu::ptx {
namespace {

Operand parseOperand(Words& words);

NameOperand parseNameOperand(Words& words) {
  NameOperand name;
  name.name = words.expectName();
  if (words.peek().kind == Token::Kind::Directive && !words.peek().spaced) name.part = std::string(words.take().text);
  return name;
}

/// `+4`, `-4`, `+-4` or nothing.
std::int64_t parseOffset(Words& words) {
  if (words.acceptSign('+') || words.isSign('-')) return parseIntegerConstant(words);
  return 0;
}

Operand parseAddress(Words& words) {
  words.expectSign('[');
  AddressOperand address;
  if (words.peek().kind == Token::Kind::Name) {
    address.base = parseNameOperand(words);
    address.offset = parseOffset(words);
  } else if (words.peek().kind == Token::Kind::Number || words.isSign('-')) {
    address.offset = parseIntegerConstant(words);
  } else {
    words.fail("an address is missing");
  }
  // Coordinates of a texture or tensor: such an instruction is refused by its name, later.
  while (!words.atEnd() && !words.isSign(']')) words.take();
  words.expectSign(']');
  return {address, false};
}

Operand parseGroup(Words& words, char opens, char closes) {
  words.expectSign(opens);
  GroupOperand group;
  if (!words.acceptSign(closes)) {
    do group.parts.push_back(parseOperand(words));
    while (words.acceptSign(','));
    words.expectSign(closes);
  }
  return {std::move(group), false};
}

Operand parseOperand(Words& words) {
  if (words.isSign('[')) return parseAddress(words);
  if (words.isSign('{')) return parseGroup(words, '{', '}');
  const bool inverted = words.isSign('!') && words.nameBehind();
  const bool negative = words.isSign('-') && words.nameBehind();
  if (inverted || negative) words.take();
  if (words.peek().kind != Token::Kind::Name) return {parseConstant(words), false};
  NameOperand name = parseNameOperand(words);
  if (name.name == "_" && name.part.empty()) return {SinkOperand{}, false};
  if (words.isSign('+')) name.offset = parseOffset(words);
  return {std::move(name), inverted || negative};
}

/// `a`, or `a|b`.
Operand parseResult(Words& words) {
  Operand first = parseOperand(words);
  if (!words.acceptSign('|')) return first;
  GroupOperand pair;
  pair.parts.push_back(std::move(first));
  pair.parts.push_back(parseOperand(words));
  return {std::move(pair), false};
}

/// `(results), target, (arguments), prototype`, of which only the target must be there.
void parseCall(Words& words, Instruction& call) {
  call.operands.emplace_back(GroupOperand{});
  if (words.isSign('(')) {
    call.operands.back() = parseGroup(words, '(', ')');
    words.expectSign(',');
  }
  call.operands.push_back(parseOperand(words));
  call.operands.emplace_back(GroupOperand{});
  if (!words.acceptSign(',')) return;
  if (words.isSign('(')) {
    call.operands.back() = parseGroup(words, '(', ')');
    if (!words.acceptSign(',')) return;
  }
  call.operands.push_back(parseOperand(words));
}

void parseRest(Words& words, Instruction& instruction) {
  while (words.peek().kind == Token::Kind::Directive) instruction.modifiers.emplace_back(words.take().text);
  if (words.acceptSign(';')) return;
  if (instruction.opcode == "call") {
    parseCall(words, instruction);
  } else {
    do instruction.operands.push_back(parseResult(words));
    while (words.acceptSign(','));
  }
  words.expectSign(';');
}

}  // namespace

Instruction parseInstruction(Words& words, const Token& opcode) {
  Instruction instruction;
  instruction.line = opcode.line;
  instruction.opcode = std::string(opcode.text);
  parseRest(words, instruction);
  return instruction;
}

Instruction parseInstruction(Words& words) {
  words.expectSign('@');
  const bool negated = words.acceptSign('!');
  std::string predicate = words.expectName();
  if (words.peek().kind != Token::Kind::Name) words.fail("an instruction is missing");
  Instruction instruction = parseInstruction(words, words.take());
  instruction.predicate = std::move(predicate);
  instruction.predicateNegated = negated;
  return instruction;
}

}  // namespace tutti::softgpu::ptx
