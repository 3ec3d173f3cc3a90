#include "softgpu/ptx/text/lexer.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace tutti::softgpu::ptx {
namespace {

bool beginsName(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}
bool continuesName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

std::uint64_t integer(std::string_view digits, int base, int line) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) {
    throw TextError{"'" + std::string(digits) + "' is no number", line};
  }
  return value;
}

}  // namespace

bool Lexer::skipSpace() {
  const std::size_t before = at_;
  while (at_ < text_.size()) {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) throw TextError{"a comment does not end", line_};
      line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                           text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      at_ = end + 2;
    } else if (std::isspace(static_cast<unsigned char>(rest[0])) != 0) {
      line_ += rest[0] == '\n' ? 1 : 0;
      ++at_;
    } else {
      break;
    }
  }
  return at_ != before;
}

std::size_t Lexer::nameLength(std::size_t from) const {
  std::size_t end = from;
  while (end < text_.size() && continuesName(text_[end])) ++end;
  return end - from;
}

Token Lexer::take(Token::Kind kind, std::size_t bytes) {
  Token token{kind, text_.substr(at_, bytes), {}, line_, false};
  at_ += bytes;
  return token;
}

/// `12`, `0x1F`, `017`, `0b101`, with a `U` behind; `0f3F800000`, `0d…`; `1.5e3`.
Token Lexer::number() {
  const std::size_t length = nameLength(at_);
  std::string_view digits = text_.substr(at_, length);
  const char second = digits.size() > 1 ? static_cast<char>(std::tolower(static_cast<unsigned char>(digits[1]))) : ' ';
  const bool exact = digits[0] == '0' && (second == 'f' || second == 'd') && digits.size() > 2;
  const bool point = at_ + length < text_.size() && text_[at_ + length] == '.';
  const bool exponent = digits.find_first_of("eE") != std::string_view::npos;
  if (!exact && second != 'x' && (point || exponent)) {
    double value = 0;
    const char* end = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value).ptr;
    Token token = take(Token::Kind::Number, static_cast<std::size_t>(end - (text_.data() + at_)));
    token.number = {__builtin_bit_cast(std::uint64_t, value), 64};
    return token;
  }
  Token token = take(Token::Kind::Number, length);
  if (digits.back() == 'U' && !exact) digits.remove_suffix(1);
  if (exact) {
    token.number = {integer(digits.substr(2), 16, line_), static_cast<std::uint16_t>(second == 'f' ? 32 : 64)};
  } else if (digits[0] == '0' && second == 'x') {
    token.number = {integer(digits.substr(2), 16, line_), 0};
  } else if (digits[0] == '0' && second == 'b') {
    token.number = {integer(digits.substr(2), 2, line_), 0};
  } else {
    token.number = {integer(digits, digits.size() > 1 && digits[0] == '0' ? 8 : 10, line_), 0};
  }
  return token;
}

Token Lexer::next() {
  const bool spaced = skipSpace();
  Token token;
  if (at_ == text_.size()) {
    token.line = line_;
    return token;
  }
  const char c = text_[at_];
  if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
    token = number();
  } else if (beginsName(c) && (c != '%' || nameLength(at_ + 1) > 0)) {
    token = take(Token::Kind::Name, 1 + nameLength(at_ + 1));
  } else if (c == '.' && nameLength(at_ + 1) > 0) {
    ++at_;
    std::size_t length = nameLength(at_);
    // `.shared::cta` and `.level::eviction_priority` are one word each.
    while (text_.substr(at_ + length).starts_with("::")) length += 2 + nameLength(at_ + length + 2);
    token = take(Token::Kind::Directive, length);
  } else if (c == '"') {
    const std::size_t end = text_.find('"', at_ + 1);
    if (end == std::string_view::npos) throw TextError{"a string does not end", line_};
    ++at_;
    token = take(Token::Kind::String, end - at_);
    ++at_;
  } else {
    token = take(Token::Kind::Sign, 1);
  }
  token.spaced = spaced;
  return token;
}

}  // namespace tutti::softgpu::ptx
