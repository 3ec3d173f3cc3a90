// Words of PTX text.
#pragma once

#include <cstdint>
#include <string_view>

#include "softgpu/ptx/text/program.h"

namespace tutti::softgpu::ptx {

struct Token {
  enum class Kind : std::uint8_t { End, Name, Directive, Number, String, Sign };
  Kind kind = Kind::End;
  std::string_view text;  ///< of a directive (`.reg`) without the dot; of a string without its quotes
  NumberOperand number;
  int line = 0;
  bool spaced = false;  ///< white space or a comment stands before it
};

/// Reads one word after the other. The text must stay while tokens of it are used.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  /// The next word; throws TextError where the text holds none.
  Token next();

 private:
  bool skipSpace();
  Token number();
  Token take(Token::Kind kind, std::size_t bytes);
  std::size_t nameLength(std::size_t from) const;

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace tutti::softgpu::ptx
