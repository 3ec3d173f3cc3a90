// A stream of words with two words of look-ahead, and what a parser asks of it.
#pragma once

#include <string>
#include <string_view>

#include "softgpu/ptx/text/lexer.h"

namespace tutti::softgpu::ptx {

/// All functions throw TextError where the text does not go on as they need it.
class Words {
 public:
  explicit Words(std::string_view text) : lexer_(text), next_(lexer_.next()), behind_(lexer_.next()) {}

  const Token& peek() const { return next_; }
  int line() const { return next_.line; }
  bool atEnd() const { return next_.kind == Token::Kind::End; }
  Token take();
  bool isSign(char sign) const { return next_.kind == Token::Kind::Sign && next_.text[0] == sign; }
  /// The sign that follows the next word without a space; a space if none does.
  char signBehind() const;
  /// The word behind the next one is a number with a point, or one that is written as bits of a float.
  bool floatBehind() const { return behind_.kind == Token::Kind::Number && behind_.number.floatBits != 0; }
  bool nameBehind() const { return behind_.kind == Token::Kind::Name; }
  bool isDirective(std::string_view name) const { return next_.kind == Token::Kind::Directive && next_.text == name; }
  /// Takes it if it is there.
  bool acceptSign(char sign);
  bool acceptDirective(std::string_view name);
  void expectSign(char sign);
  std::string expectName();
  /// An integer, with a sign perhaps.
  std::int64_t expectInteger();
  /// Everything up to and with the next `;`.
  void skipStatement();
  [[noreturn]] void fail(const std::string& what) const;

 private:
  Lexer lexer_;
  Token next_;
  Token behind_;
};

}  // namespace tutti::softgpu::ptx
