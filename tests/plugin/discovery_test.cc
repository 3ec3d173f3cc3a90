// From the value of NCCL_NET_PLUGIN to files.
#include "plugin/discovery.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "plugin/plugin_fixture.h"
#include "support/log_capture.h"

namespace tutti::test {
namespace {

using Names = std::vector<std::string>;

TEST(Discovery, ReadsEveryFormOfTheList) {
  const struct {
    const char* value;
    Names names;
  } rows[] = {
      {"", {}},
      {"none", {}},
      {"NONE", {}},
      {"None", {}},
      {"nones", {"nones"}},
      {"foo", {"foo"}},
      {"foo,bar", {"foo", "bar"}},
      {",,foo,,bar,", {"foo", "bar"}},
      {"none,foo", {"none", "foo"}},      // only the whole value means that there is none
      {" foo , bar", {" foo ", " bar"}},  // blanks belong to names
      {"/x/y.so,libz.so", {"/x/y.so", "libz.so"}},
  };
  for (const auto& row : rows) EXPECT_EQ(plugin::parsePluginList(row.value), row.names) << row.value;
}

TEST(Discovery, IgnoresWhatIsTooManyOrTooLong) {
  const ScopedLog log("INFO");
  std::string value;
  for (int i = 0; i < 16; ++i) value += "p" + std::to_string(i) + ",";
  EXPECT_EQ(plugin::parsePluginList(value).size(), 14U);
  EXPECT_EQ(plugin::parsePluginList(value).back(), "p13");
  EXPECT_NE(capturedText().find("NCCL_NET_PLUGIN list contains more than 14 plugins, ignoring the rest"),
            std::string::npos);

  const std::string fits(254, 'a');
  const std::string tooLong(255, 'b');
  EXPECT_EQ(plugin::parsePluginList(tooLong + "," + fits), Names{fits});
  EXPECT_NE(capturedText().find("longer than 255 characters, ignoring it."), std::string::npos);
}

TEST(Discovery, KnowsWhichFilesAreTried) {
  const struct {
    const char* name;
    Names files;
  } rows[] = {
      {"", {"libnccl-net.so"}},
      {"foo", {"foo", "libnccl-net-foo.so"}},
      {"foo.so", {"foo.so", "libnccl-net-foo.so.so"}},
      {"libfoo", {"libfoo", "libnccl-net-libfoo.so"}},
      {"libnccl-net-foo.so", {"libnccl-net-foo.so"}},
      {"libanything.so", {"libanything.so"}},
      {"lib.so", {"lib.so"}},
      {"libfoo.so.1", {"libfoo.so.1", "libnccl-net-libfoo.so.1.so"}},
      {"LIBfoo.so", {"LIBfoo.so", "libnccl-net-LIBfoo.so.so"}},
      {"/path/x.so", {"/path/x.so"}},
      {"./foo", {"./foo"}},
  };
  for (const auto& row : rows) EXPECT_EQ(plugin::pluginFileNames(plugin::kNetPlugins, row.name), row.files) << row.name;
}

TEST(Discovery, KnowsTheFilesOfEveryKind) {
  const struct {
    const plugin::PluginKind& kind;
    std::string prefix;
  } rows[] = {{plugin::kNetPlugins, "libnccl-net"},
              {plugin::kTunerPlugins, "libnccl-tuner"},
              {plugin::kProfilerPlugins, "libnccl-profiler"},
              {plugin::kEnvPlugins, "libnccl-env"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.prefix);
    const auto files = [&](const std::string& name) { return plugin::pluginFileNames(row.kind, name); };
    EXPECT_EQ(files(""), Names{row.prefix + ".so"});
    EXPECT_EQ(files("foo"), (Names{"foo", row.prefix + "-foo.so"}));
    EXPECT_EQ(files("foo.so"), (Names{"foo.so", row.prefix + "-foo.so.so"}));
    EXPECT_EQ(files("libfoo.so"), Names{"libfoo.so"});
    EXPECT_EQ(files("/path/foo"), Names{"/path/foo"});
  }
}

TEST(Discovery, OpensEveryForm) {
  for (const std::string& name : {std::string("testv8"), std::string("libnccl-net-testv8.so"), pluginPath(8)}) {
    const plugin::OpenedPlugin opened = plugin::openPlugin(plugin::kNetPlugins, name);
    ASSERT_TRUE(opened.library.valid()) << name << ": " << opened.why;
    EXPECT_TRUE(opened.path.ends_with("/libnccl-net-testv8.so")) << opened.path;
    EXPECT_NE(opened.library.symbol("ncclNetPlugin_v8"), nullptr);
  }
}

/// Plugins may have symbols of the same names, and of the program's.
TEST(Discovery, KeepsWhatALibraryExportsToItself) {
  const plugin::OpenedPlugin opened = plugin::openPlugin(plugin::kNetPlugins, "testv8");
  ASSERT_TRUE(opened.library.valid()) << opened.why;
  EXPECT_NE(opened.library.symbol("testNetCounts"), nullptr);
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "testNetCounts"), nullptr);
}

TEST(Discovery, FindsEverySymbolOfALibraryWhenItIsOpened) {
  const ScopedLog log("INFO");
  const plugin::OpenedPlugin opened = plugin::openPlugin(plugin::kNetPlugins, "libnccl-net-lacking.so");
  EXPECT_FALSE(opened.library.valid());
  EXPECT_NE(opened.why.find("undefined symbol: nobodyHasIt"), std::string::npos) << opened.why;
  EXPECT_NE(capturedText().find("NET/Plugin: libnccl-net-lacking.so: "), std::string::npos);
  EXPECT_EQ(capturedText().find("Could not find"), std::string::npos);
}

TEST(Discovery, FindsTheProgramItself) {
  for (const char* name : {"STATIC_PLUGIN", "static_plugin"}) {
    const plugin::OpenedPlugin opened = plugin::openPlugin(plugin::kNetPlugins, name);
    ASSERT_TRUE(opened.library.valid());
    EXPECT_EQ(opened.path, "STATIC_PLUGIN");
    EXPECT_NE(opened.library.symbol("ncclNetPlugin_v9"), nullptr);  // of registry_test.cc
  }
}

TEST(Discovery, TellsAllFilesThatAreNowhere) {
  const ScopedLog log("INFO");
  const plugin::OpenedPlugin opened = plugin::openPlugin(plugin::kNetPlugins, "nowhere");
  EXPECT_FALSE(opened.library.valid());
  EXPECT_EQ(opened.why, "not found: nowhere libnccl-net-nowhere.so");
  EXPECT_NE(capturedText().find("NET/Plugin: Could not find: nowhere libnccl-net-nowhere.so"), std::string::npos);
  EXPECT_NE(capturedText().find("ncclOsDlopen(libnccl-net-nowhere.so) failed: "), std::string::npos);
}

TEST(Discovery, TellsWhyAFileCannotBeUsed) {
  const ScopedLog log("INFO");
  const std::string path = "/tmp/tutti-broken-plugin-" + std::to_string(::getpid()) + ".so";
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("This is not a library, however long it may be: it does not begin like one.\n", file);
  std::fclose(file);
  const plugin::OpenedPlugin opened = plugin::openPlugin(plugin::kNetPlugins, path);
  ::unlink(path.c_str());
  EXPECT_FALSE(opened.library.valid());
  EXPECT_NE(opened.why.find(path), std::string::npos);
  EXPECT_NE(capturedText().find("NET/Plugin: " + path + ": "), std::string::npos);
  EXPECT_EQ(capturedText().find("Could not find"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
