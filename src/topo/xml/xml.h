// Elements and attributes of the topology and graph files, as written, with lines for messages.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tutti::topo {

/// One element. A value; children in the order of the file.
struct XmlElement {
  std::string name;
  int line = 0;                                                 ///< of its start tag, 1-based; 0: not from a file
  std::vector<std::pair<std::string, std::string>> attributes;  ///< in the file's order, names unique
  std::vector<XmlElement> children;
  std::shared_ptr<const std::string> origin;  ///< the file (or what parseXml was told), null: not from a file

  /// The attribute's value, null if there is none.
  const std::string* find(std::string_view attribute) const;
  /// Sets or adds.
  void set(std::string_view attribute, std::string value);
  /// "a.xml, line 12, <gpu>" for messages; also after trees of several files were put together.
  std::string where() const;
};

/// Bounds that keep a hostile file from using up memory or stack.
struct XmlLimits {
  std::size_t bytes = 16u << 20;
  int elements = 1 << 18;
  int depth = 64;
  int attributes = 64;  ///< of one element
};

/// The root element of `text`. `origin` (a path or "rank 3's topology") is named in messages.
/// Errors: ncclInvalidUsage with origin, line and reason: not well formed, more than `limits`, text between tags.
Result<XmlElement> parseXml(std::string_view text, std::string_view origin, const XmlLimits& limits = {});

/// All of a regular file of at most `most` bytes. `asked` says in messages what names it ("NCCL_TOPO_FILE"). Errors:
/// ncclSystemError when it cannot be read, ncclInvalidUsage when it is too large or no regular file, with the path,
/// `asked`, the cause and what to do.
Result<std::string> readXmlText(const std::string& path, std::size_t most, std::string_view asked = {});

/// parseXml of a file. Errors: also those of readXmlText.
Result<XmlElement> readXmlFile(const std::string& path, const XmlLimits& limits = {}, std::string_view asked = {});

/// Text as NCCL writes and reads it: an element per line, two spaces a level, attributes behind one space each in
/// double quotes, no prolog.
std::string writeXml(const XmlElement& root);

/// The same into a file, which is replaced. `asked` says in messages who wants it ("NCCL_TOPO_DUMP_FILE, rank 3").
/// Whoever reads a FIFO or a terminal is waited for only a few seconds. Errors: ncclSystemError with the path, `asked`,
/// the system's words and what to do.
Status writeXmlFile(const std::string& path, const XmlElement& root, std::string_view asked = {});

}  // namespace tutti::topo
