#include "topo/xml/xml.h"

#include <algorithm>
#include <cerrno>
#include <pugixml.hpp>
#include <utility>

#include "base/bounded_write.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/user_file.h"
#include "topo/xml/scan.h"

namespace tutti::topo {

namespace {

/// Values are taken as they stand, as NCCL does: no entities; line breaks in them become spaces.
constexpr unsigned kParseOptions = pugi::parse_wconv_attribute;

/// Turns pugixml's nodes into ours, `lines` being those of the elements in order. Depth and numbers are bounded by the
/// scan.
class Conversion {
 public:
  Conversion(std::string_view origin, const std::vector<int>& lines)
      : origin_(std::make_shared<const std::string>(origin)), lines_(lines) {}

  Status convert(const pugi::xml_node& from, XmlElement& to) {
    to.name = from.name();
    to.line = next_ < lines_.size() ? lines_[next_] : 0;
    to.origin = origin_;
    ++next_;
    for (const pugi::xml_attribute& attribute : from.attributes()) TRY(addAttribute(attribute, to));
    const auto children = from.children();
    to.children.reserve(static_cast<std::size_t>(std::distance(children.begin(), children.end())));
    for (const pugi::xml_node& child : children) TRY(convert(child, to.children.emplace_back()));
    return {};
  }

 private:
  Status addAttribute(const pugi::xml_attribute& attribute, XmlElement& to) const {
    if (to.find(attribute.name()) != nullptr) {
      return fail(ncclInvalidUsage, "{}: the attribute '{}' stands there twice", to.where(),
                  shownText(attribute.name()));
    }
    to.attributes.emplace_back(attribute.name(), attribute.value());
    return {};
  }

  std::shared_ptr<const std::string> origin_;
  const std::vector<int>& lines_;
  std::size_t next_ = 0;
};

/// Why pugixml refuses a text that the scan found to be nested properly, in words about these files.
const char* reasonOf(pugi::xml_parse_status status) {
  if (status == pugi::status_bad_attribute) return "an attribute is not written as name=\"value\"";
  if (status == pugi::status_out_of_memory) return "there is not enough memory for it";
  if (status == pugi::status_bad_pi) return "a processing instruction is not well formed";
  return "a tag is not well formed";
}

void writeAttribute(std::string_view name, std::string_view value, std::string& text) {
  // There is no way to write both kinds of quotes into one value that the readers of these files know.
  const char quote = value.find('"') == std::string_view::npos ? '"' : '\'';
  ((text += ' ') += name) += '=';
  text += quote;
  for (const char c : value) {
    if (c == quote) {
      text += '"';
    } else {
      text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  text += quote;
}

/// " (NCCL_TOPO_FILE)", or nothing.
std::string wish(std::string_view asked) {
  return asked.empty() ? std::string() : fmt::format(" ({})", asked);
}

Status cannotWrite(const std::string& path, std::string_view asked, int error) {
  return fail(ncclSystemError, "cannot write {}{}: {}", path, wish(asked), whyNotWritten(error));
}

void writeElement(const XmlElement& element, std::size_t level, std::string& text) {
  text.append(level * 2, ' ');
  (text += '<') += element.name;
  for (const auto& [name, value] : element.attributes) writeAttribute(name, value, text);
  if (element.children.empty()) {
    text += "/>\n";
    return;
  }
  text += ">\n";
  for (const XmlElement& child : element.children) writeElement(child, level + 1, text);
  text.append(level * 2, ' ');
  ((text += "</") += element.name) += ">\n";
}

}  // namespace

const std::string* XmlElement::find(std::string_view attribute) const {
  for (const auto& [key, value] : attributes) {
    if (key == attribute) return &value;
  }
  return nullptr;
}

void XmlElement::set(std::string_view attribute, std::string value) {
  for (auto& [key, old] : attributes) {
    if (key != attribute) continue;
    old = std::move(value);
    return;
  }
  attributes.emplace_back(attribute, std::move(value));
}

std::string XmlElement::where() const {
  const std::string tag = fmt::format("<{}>", shownText(name));
  return origin ? fmt::format("{}, line {}, {}", *origin, line, tag) : tag;
}

Result<XmlElement> parseXml(std::string_view text, std::string_view origin, const XmlLimits& limits) {
  ASSIGN(const std::vector<int> lines, scanXml(text, origin, limits));
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), kParseOptions, pugi::encoding_utf8);
  if (!parsed) {
    return fail(ncclInvalidUsage, "{}, line {}: {}", origin, lineOf(text, parsed.offset), reasonOf(parsed.status));
  }
  XmlElement root;
  TRY(Conversion(origin, lines).convert(document.document_element(), root));
  return root;
}

Result<std::string> readXmlText(const std::string& path, std::size_t most, std::string_view asked) {
  UserFile file = readUserFile(path, most);
  if (file.ok()) return std::move(file.text);
  const bool systems = file.trouble == FileTrouble::Missing || file.trouble == FileTrouble::Unreadable;
  return fail(systems ? ncclSystemError : ncclInvalidUsage, "cannot read {}{}: {}", path, wish(asked), file.why);
}

Result<XmlElement> readXmlFile(const std::string& path, const XmlLimits& limits, std::string_view asked) {
  ASSIGN(const std::string text, readXmlText(path, limits.bytes, asked));
  return parseXml(text, path, limits);
}

std::string writeXml(const XmlElement& root) {
  std::string text;
  writeElement(root, 0, text);
  return text;
}

Status writeXmlFile(const std::string& path, const XmlElement& root, std::string_view asked) {
  constexpr milliseconds kPatience{3000};
  const Fd file = openForWriting(path);
  if (!file.valid()) return cannotWrite(path, asked, errno);
  const int error = writeBounded(file.get(), writeXml(root), kPatience);
  return error == 0 ? Status() : cannotWrite(path, asked, error);
}

}  // namespace tutti::topo
