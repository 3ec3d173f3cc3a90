#include "softgpu/ptx/text/words.h"

#include <utility>

namespace tutti::softgpu::ptx {

Token Words::take() {
  Token taken = std::exchange(next_, std::exchange(behind_, {}));
  if (next_.kind != Token::Kind::End) {
    behind_ = lexer_.next();
  } else {
    behind_ = next_;
  }
  return taken;
}

char Words::signBehind() const {
  return behind_.kind == Token::Kind::Sign && !behind_.spaced ? behind_.text[0] : ' ';
}

bool Words::acceptSign(char sign) {
  const bool there = isSign(sign);
  if (there) take();
  return there;
}

bool Words::acceptDirective(std::string_view name) {
  const bool there = isDirective(name);
  if (there) take();
  return there;
}

void Words::expectSign(char sign) {
  if (!acceptSign(sign)) fail(std::string{'\'', sign, '\''}.append(" is missing"));
}

std::string Words::expectName() {
  if (next_.kind != Token::Kind::Name) fail("a name is missing");
  return std::string(take().text);
}

std::int64_t Words::expectInteger() {
  const bool negative = acceptSign('-');
  if (next_.kind != Token::Kind::Number || next_.number.floatBits != 0) fail("an integer is missing");
  const auto value = static_cast<std::int64_t>(take().number.bits);
  return negative ? -value : value;
}

void Words::skipStatement() {
  while (!atEnd() && !isSign(';')) take();
  expectSign(';');
}

void Words::fail(const std::string& what) const {
  std::string whole = what;
  whole += " before ";
  if (atEnd()) throw TextError{whole.append("the end of the text"), next_.line};
  whole.append("'").append(next_.text).append("'");
  throw TextError{whole, next_.line};
}

}  // namespace tutti::softgpu::ptx
