#include "topo/xml/scan.h"

#include <algorithm>
#include <string>

#include "base/log.h"

namespace tutti::topo {

namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kEndOfName = " \t\r\n/>\"'=<";

/// Walks along the text once. `at_` is the next character, `line_` its line.
class Scan {
 public:
  Scan(std::string_view text, std::string_view origin, const XmlLimits& limits)
      : text_(text), origin_(origin), limits_(limits) {}

  Result<std::vector<int>> run() {
    TRY(checkCharacters());
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    while (true) {
      const std::size_t next = text_.find_first_not_of(kSpace, at_);
      moveTo(std::min(next, text_.size()));
      if (next == std::string_view::npos) break;
      if (text_[at_] != '<') {
        return bad(open_.empty() ? "text outside of the root element" : "text between elements");
      }
      TRY(markup());
    }
    if (!open_.empty()) {
      return bad(fmt::format("the file ends inside <{}> of line {}: is it cut off?", shownText(open_.back().name),
                             open_.back().line));
    }
    if (lines_.empty()) return bad("there is no element");
    return std::move(lines_);
  }

 private:
  struct Open {
    std::string_view name;
    int line;
  };

  Status bad(std::string_view reason) const {
    return fail(ncclInvalidUsage, "{}, line {}: {}", origin_, line_, reason);
  }

  Status checkCharacters() {
    if (text_.size() > limits_.bytes) {
      // Of a file no more was read than shows that it is too long.
      return fail(ncclInvalidUsage, "{}: more than {} bytes, which no machine needs", origin_, limits_.bytes);
    }
    const auto isControl = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 && kSpace.find(c) == std::string_view::npos;
    };
    const auto control = std::find_if(text_.begin(), text_.end(), isControl);
    if (control == text_.end()) return {};
    moveTo(static_cast<std::size_t>(control - text_.begin()));
    return bad(fmt::format("a character 0x{:02x}: this is no text", static_cast<unsigned char>(*control)));
  }

  void moveTo(std::size_t position) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
    at_ = position;
  }

  /// Skips to behind `end`, which is looked for `offset` characters on.
  Status skipBehind(std::string_view end, std::size_t offset, std::string_view what) {
    const std::size_t found = text_.find(end, at_ + offset);
    if (found == std::string_view::npos) return bad(fmt::format("{} without its end '{}'", what, end));
    moveTo(found + end.size());
    return {};
  }

  Status markup() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("<!--")) return skipBehind("-->", 4, "a comment");
    if (rest.starts_with("<?")) return skipBehind("?>", 2, "a processing instruction");
    if (rest.starts_with("<!")) return bad("a declaration or CDATA section: these files have neither");
    return rest.starts_with("</") ? endTag() : startTag();
  }

  std::string_view nameAt(std::size_t position) const {
    const std::size_t end = std::min(text_.find_first_of(kEndOfName, position), text_.size());
    return text_.substr(position, end - position);
  }

  Status endTag() {
    const std::string_view name = nameAt(at_ + 2);
    if (open_.empty()) return bad(fmt::format("</{}> closes nothing", shownText(name)));
    if (name != open_.back().name) {
      return bad(fmt::format("</{}> where <{}> of line {} is to be closed", shownText(name),
                             shownText(open_.back().name), open_.back().line));
    }
    TRY(skipBehind(">", 2, "an end tag"));
    open_.pop_back();
    return {};
  }

  Status startTag() {
    const std::string_view name = nameAt(at_ + 1);
    if (name.empty()) return bad("'<' without the name of an element");
    if (open_.empty() && !lines_.empty()) return bad(fmt::format("<{}> is a second root element", shownText(name)));
    if (static_cast<int>(lines_.size()) >= limits_.elements) {
      return bad(fmt::format("more than {} elements", limits_.elements));
    }
    if (static_cast<int>(open_.size()) >= limits_.depth) {
      return bad(fmt::format("elements more than {} deep in each other", limits_.depth));
    }
    lines_.push_back(line_);
    ASSIGN(const std::size_t end, endOfTag(name));
    const bool empty = text_[end - 1] == '/';
    if (!empty) open_.push_back({name, line_});
    moveTo(end + 1);
    return {};
  }

  /// Where the '>' of the start tag is; it may also stand in values.
  Result<std::size_t> endOfTag(std::string_view name) const {
    int values = 0;
    for (std::size_t end = at_ + 1;; ++end) {
      end = text_.find_first_of("\"'>", end);
      if (end != std::string_view::npos && text_[end] == '>') return end;
      if (end != std::string_view::npos) end = text_.find(text_[end], end + 1);
      if (end == std::string_view::npos) return bad(fmt::format("<{}> without its end '>'", shownText(name)));
      if (++values > limits_.attributes) {
        return bad(fmt::format("<{}> has more than {} attributes", shownText(name), limits_.attributes));
      }
    }
  }

  std::string_view text_;
  std::string_view origin_;
  const XmlLimits& limits_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Open> open_;
  std::vector<int> lines_;
};

}  // namespace

Result<std::vector<int>> scanXml(std::string_view text, std::string_view origin, const XmlLimits& limits) {
  return Scan(text, origin, limits).run();
}

int lineOf(std::string_view text, std::ptrdiff_t offset) {
  const std::size_t end = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text.size());
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
}

std::string shownText(std::string_view value) {
  constexpr std::size_t kMost = 60;
  std::string shown(value.substr(0, kMost));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return value.size() > kMost ? shown + "..." : shown;
}

}  // namespace tutti::topo
