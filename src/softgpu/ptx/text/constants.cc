#include "softgpu/ptx/text/constants.h"

#include <array>
#include <optional>
#include <string>

namespace tutti::softgpu::ptx {
namespace {

// As signed numbers of 64 bits; what differs for unsigned ones (division, comparison, right shifts) matters only beyond
// 63 bits, where nobody writes an expression.
std::int64_t expression(Words& words, int least);

std::int64_t unary(Words& words) {
  if (words.acceptSign('-')) return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(unary(words)));
  if (words.acceptSign('+')) return unary(words);
  if (words.acceptSign('~')) return ~unary(words);
  if (words.acceptSign('!')) return unary(words) == 0 ? 1 : 0;
  if (words.acceptSign('(')) {
    // `(.s64) x`
    if (words.acceptDirective("s64") || words.acceptDirective("u64")) {
      words.expectSign(')');
      return unary(words);
    }
    const std::int64_t value = expression(words, 0);
    words.expectSign(')');
    return value;
  }
  const Token& next = words.peek();
  if (next.kind == Token::Kind::Name && next.text == "WARP_SZ") {
    words.take();
    return 32;
  }
  if (next.kind != Token::Kind::Number || next.number.floatBits != 0) words.fail("an integer is missing");
  return static_cast<std::int64_t>(words.take().number.bits);
}

struct Operator {
  std::string_view text;
  int precedence;
};
/// Longer ones first: their beginnings are operators too.
constexpr std::array<Operator, 18> kOperators = {{{"||", 1},
                                                  {"&&", 2},
                                                  {"==", 6},
                                                  {"!=", 6},
                                                  {"<=", 7},
                                                  {">=", 7},
                                                  {"<<", 8},
                                                  {">>", 8},
                                                  {"|", 3},
                                                  {"^", 4},
                                                  {"&", 5},
                                                  {"<", 7},
                                                  {">", 7},
                                                  {"+", 9},
                                                  {"-", 9},
                                                  {"*", 10},
                                                  {"/", 10},
                                                  {"%", 10}}};

/// The operator that begins here, of which only the first sign was looked at; both signs are taken by then if there are
/// two.
std::optional<Operator> takeOperator(Words& words, int least) {
  if (words.peek().kind != Token::Kind::Sign) return std::nullopt;
  const char first = words.peek().text[0];
  const char second = words.signBehind();
  for (const Operator& known : kOperators) {
    if (known.text[0] != first || (known.text.size() > 1 && known.text[1] != second)) continue;
    if (known.precedence < least) return std::nullopt;
    for (std::size_t i = 0; i < known.text.size(); ++i) words.take();
    return known;
  }
  return std::nullopt;
}

std::int64_t apply(Words& words, std::string_view text, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  if (text == "+") return static_cast<std::int64_t>(ua + ub);
  if (text == "-") return static_cast<std::int64_t>(ua - ub);
  if (text == "*") return static_cast<std::int64_t>(ua * ub);
  if (text == "<<") return b < 0 || b > 63 ? 0 : static_cast<std::int64_t>(ua << b);
  if (text == ">>") return b < 0 || b > 63 ? 0 : a >> b;
  if (text == "&") return a & b;
  if (text == "|") return a | b;
  if (text == "^") return a ^ b;
  if (text == "&&") return a != 0 && b != 0 ? 1 : 0;
  if (text == "||") return a != 0 || b != 0 ? 1 : 0;
  if (text == "==") return a == b ? 1 : 0;
  if (text == "!=") return a != b ? 1 : 0;
  if (text == "<=") return a <= b ? 1 : 0;
  if (text == ">=") return a >= b ? 1 : 0;
  if (text == "<") return a < b ? 1 : 0;
  if (text == ">") return a > b ? 1 : 0;
  if (b == 0) words.fail("a constant is divided by zero");
  if (b == -1) return text == "/" ? static_cast<std::int64_t>(0 - ua) : 0;
  return text == "/" ? a / b : a % b;
}

std::int64_t expression(Words& words, int least) {
  std::int64_t value = unary(words);
  while (const auto found = takeOperator(words, least)) {
    value = apply(words, found->text, value, expression(words, found->precedence + 1));
  }
  if (least > 0 || !words.acceptSign('?')) return value;
  const std::int64_t yes = expression(words, 0);
  words.expectSign(':');
  const std::int64_t no = expression(words, 0);
  return value != 0 ? yes : no;
}

}  // namespace

NumberOperand parseConstant(Words& words) {
  const bool negative = words.isSign('-') && words.floatBehind();
  if (negative) words.take();
  if (words.peek().kind == Token::Kind::Number && words.peek().number.floatBits != 0) {
    NumberOperand number = words.take().number;
    if (negative) number.bits ^= std::uint64_t{1} << (number.floatBits - 1);
    return number;
  }
  return {static_cast<std::uint64_t>(expression(words, 0)), 0};
}

std::int64_t parseIntegerConstant(Words& words) {
  return expression(words, 0);
}

}  // namespace tutti::softgpu::ptx
