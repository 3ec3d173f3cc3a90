#include "mutate.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "change_bytes.h"
#include "topo/xml/xml.h"

namespace tutti::fuzz {

namespace {

constexpr std::array kValues = {"",
                                "0",
                                "-1",
                                "1",
                                "2",
                                "7",
                                "16",
                                "64",
                                "80",
                                "90",
                                "100",
                                "1024",
                                "65535",
                                "1000000",
                                "0x",
                                "0x10",
                                "2147483647",
                                "2147483648",
                                "-2147483648",
                                "1e30",
                                "18446744073709551615",
                                "0xffffffffffffffff",
                                "nan",
                                "inf",
                                "0.5",
                                "x",
                                "0000:11:00.0",
                                "0000:12:00.0",
                                "0000:10:00.0",
                                "fffffff:ff:ff.0",
                                "ffffffff:ff:ff.f",
                                "0x030200",
                                "0x060400",
                                "0x068000",
                                "0x068001",
                                "0x020700",
                                "x86_64",
                                "arm64",
                                "ppc64",
                                "GenuineIntel",
                                "AuthenticAMD",
                                "CentaurHauls",
                                "16.0 GT/s PCIe",
                                "NVL",
                                "SYS",
                                "DIS",
                                "0x1000",
                                "0xc030",
                                "0xc010",
                                "0x100000000000001"};
constexpr std::array kNames = {"system", "cpu", "pci",    "gpu",   "nvlink",  "c2c", "pcilink",
                               "nic",    "net", "graphs", "graph", "channel", "fan"};
constexpr std::array kAttributes = {"version",
                                    "host_hash",
                                    "numaid",
                                    "affinity",
                                    "arch",
                                    "vendor",
                                    "familyid",
                                    "modelid",
                                    "busid",
                                    "class",
                                    "device",
                                    "target",
                                    "link_speed",
                                    "link_width",
                                    "dev",
                                    "sm",
                                    "rank",
                                    "gdr",
                                    "mlopart",
                                    "count",
                                    "tclass",
                                    "bw",
                                    "name",
                                    "speed",
                                    "port",
                                    "guid",
                                    "latency",
                                    "maxconn",
                                    "coll",
                                    "net",
                                    "rail",
                                    "plane",
                                    "id",
                                    "pattern",
                                    "crossnic",
                                    "nchannels",
                                    "speedintra",
                                    "speedinter",
                                    "latencyinter",
                                    "typeintra",
                                    "typeinter",
                                    "samechannels",
                                    "subsystem_vendor",
                                    "subsystem_device"};

class Mutation {
 public:
  explicit Mutation(std::uint64_t seed) : random_(seed) {}

  std::string run(std::string_view text) {
    auto xml = topo::parseXml(text, "mutated", {.bytes = 1 << 20, .elements = 20000});
    if (!xml.ok() || below(16) == 0) return changeBytes(text, random_());
    root_ = std::move(xml).value();
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change();
    return topo::writeXml(root_);
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }

  template <typename Values>
  auto any(const Values& values) {
    return values[below(values.size())];
  }

  void collect(topo::XmlElement& element) {
    all_.push_back(&element);
    for (topo::XmlElement& child : element.children) collect(child);
  }

  void change() {
    all_.clear();
    collect(root_);
    topo::XmlElement& element = *any(all_);
    const std::size_t kind = below(8);
    if (kind < 3) return changeAttribute(element);
    if (kind == 3) {
      element.name = any(kNames);
    } else if (kind == 4 && all_.size() < 5000) {
      const topo::XmlElement copy = *any(all_);
      element.children.insert(
          element.children.begin() + static_cast<std::ptrdiff_t>(below(element.children.size() + 1)), copy);
    } else if (kind == 5) {
      std::shuffle(element.children.begin(), element.children.end(), random_);
    } else if (!element.children.empty()) {
      const auto child = element.children.begin() + static_cast<std::ptrdiff_t>(below(element.children.size()));
      if (kind == 6) {
        element.children.erase(child);
      } else {
        // Its content takes its place.
        std::vector<topo::XmlElement> content = std::move(child->children);
        const auto at = element.children.erase(child);
        element.children.insert(at, content.begin(), content.end());
      }
    }
  }

  void changeAttribute(topo::XmlElement& element) {
    const topo::XmlElement& other = *any(all_);
    const bool known = !element.attributes.empty() && below(4) != 0;
    const std::size_t index = below(element.attributes.size());
    if (known && below(5) == 0) {
      element.attributes.erase(element.attributes.begin() + static_cast<std::ptrdiff_t>(index));
      return;
    }
    const std::string name = known ? element.attributes[index].first : any(kAttributes);
    const std::string* elsewhere = other.find(name);
    element.set(name, elsewhere != nullptr && below(2) == 0 ? *elsewhere : any(kValues));
  }

  std::mt19937_64 random_;
  topo::XmlElement root_;
  std::vector<topo::XmlElement*> all_;
};

}  // namespace

std::string mutateXml(std::string_view text, std::uint64_t seed) {
  return Mutation(seed).run(text);
}

}  // namespace tutti::fuzz
