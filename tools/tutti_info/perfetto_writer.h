// Writes the file format of the Perfetto UI: tracks, slices, instants, flows. The numbers of fields are those of
// protos/perfetto/trace/*.proto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tutti::tool {

/// What the UI shows of an event when it is chosen.
struct Fact {
  std::string name;
  std::variant<std::uint64_t, std::string> value;
};

/// A slice, from `begin` to `end`, or an instant where they are one. Nanoseconds.
struct TimelineEvent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name;
  std::string category;
  std::vector<Fact> facts;
  std::vector<std::uint64_t> flows;     ///< arrows run through all events with the same number, in time
  std::vector<std::uint64_t> flowEnds;  ///< they end here
};

/// Collects events by track, and makes the file.
class PerfettoWriter {
 public:
  /// The track of a process. Ids of tracks are never 0.
  std::uint64_t process(std::uint32_t pid, const std::string& name);
  std::uint64_t thread(std::uint64_t process, std::uint32_t pid, std::uint32_t tid, const std::string& name);
  /// A track of events below another one.
  std::uint64_t track(std::uint64_t parent, const std::string& name);
  void add(std::uint64_t track, TimelineEvent event);
  /// The whole file. Slices of one track that overlap without being nested go to further tracks of the same name.
  std::string finish();

 private:
  struct Track {
    std::uint64_t id = 0;
    std::uint64_t parent = 0;
    std::string name;
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;  ///< 0: no thread
    std::vector<TimelineEvent> events;
  };
  using Edge = std::pair<std::uint64_t, std::string>;  ///< time, packet

  std::uint64_t addTrack(Track track);
  static void describe(const Track& track, std::uint64_t id, std::string& file);
  void writeTrack(Track& track, std::string& file, std::vector<Edge>& edges);

  std::vector<Track> tracks_;
  std::uint64_t nextId_ = 1;
};

}  // namespace tutti::tool
