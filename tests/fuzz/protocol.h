// The protocol of clients once more, as its description has it and without the library's code: what a client has to
// hear, whatever it says and in whatever pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::fuzz {

/// What a session owes its client.
class ProtocolModel {
 public:
  enum class Stage : std::uint8_t {
    Commands,
    Monitor,
    DeafMonitor,  ///< the client says nothing more
    Report,       ///< it waits for one, and is not heard
    Over,         ///< it has its report
    Closed,       ///< it was told nothing more, and the connection ends
  };
  static constexpr std::size_t kLongestLine = 1024;

  void said(char byte);
  void saidNothingMore();
  /// An event of that group (1: lifecycle, 2: trace), as the client may want to see it.
  void happened(std::uint8_t group, std::string_view text, std::string_view json);
  void firstPart(std::string_view text) { heard_ += text; }
  void report(std::string_view text);

  Stage stage() const { return stage_; }
  bool json() const { return json_; }
  bool verbose() const { return verbose_; }
  /// What the client has set; -1: nothing.
  long timeout() const { return timeout_; }
  /// All that the client has to hear.
  const std::string& heard() const { return heard_; }

 private:
  void command(std::string_view line);
  bool monitor(std::string_view upperCase, std::string_view line);

  Stage stage_ = Stage::Commands;
  std::string line_;
  std::string heard_;
  bool json_ = false;
  bool verbose_ = false;
  std::uint8_t groups_ = 0;
  long timeout_ = -1;
};

}  // namespace tutti::fuzz
