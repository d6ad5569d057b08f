#include "glass/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "glass/file_rules.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class AssetFolderTest : public ::testing::Test {
 protected:
  AssetFolderTest() {
    std::string name = fs::temp_directory_path() / "page-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~AssetFolderTest() override { fs::remove_all(folder); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(folder + "/" + name).parent_path());
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
  }
  std::string error() const {
    auto loaded = AssetFolder::load(folder);
    return loaded.ok() ? "" : loaded.error().message;
  }
  std::string folder;
};

TEST_F(AssetFolderTest, FilesBecomeAssets) {
  write("index.html", "<p>");
  write("index.html.br", "br");
  write("icon.svg", "<svg/>");
  write("assets/a-1.js", "1;");
  write("assets/a-1.js.gz", "gz");
  write("assets/a-1.js.map", "{}");
  write("assets/a-1.js.map.gz", "gz");
  write("empty.txt", "");
  for (const std::string& name : {folder, folder + "/"}) {
    auto loaded = AssetFolder::load(name);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    auto assets = (*loaded)->assets();
    ASSERT_EQ(assets.size(), 4u);
    const Asset* page = find_asset(assets, "/");
    ASSERT_NE(page, nullptr);
    EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
    EXPECT_EQ(page->etag, "33f2799467177287a29260780a107ac9") << "of a SHA-256";
    EXPECT_FALSE(page->immutable);
    EXPECT_EQ(text_of(page->raw), "<p>");
    EXPECT_EQ(text_of(page->brotli), "br");
    EXPECT_TRUE(page->gzip.empty());
    const Asset* script = find_asset(assets, "/ui/assets/a-1.js");
    ASSERT_NE(script, nullptr);
    EXPECT_EQ(script->content_type, "text/javascript; charset=utf-8");
    EXPECT_TRUE(script->immutable);
    EXPECT_EQ(text_of(script->gzip), "gz");
    EXPECT_NE(script->etag, page->etag);
    EXPECT_NE(find_asset(assets, "/ui/empty.txt"), nullptr);
    for (const char* none : {"", "/ui", "/ui/", "/ui/index.html", "/ui/assets", "/index.html",
                             "/ui/assets/a-1.js.gz", "/ui/assets/a-1.js.map", "/ui/icon.sv"})
      EXPECT_EQ(find_asset(assets, none), nullptr) << none;
  }
}

TEST_F(AssetFolderTest, ErrorsNameTheFile) {
  EXPECT_THAT(error(), HasSubstr("found no index.html"));
  write("index.html", "<p>");
  EXPECT_EQ(error(), "");
  EXPECT_THAT(AssetFolder::load(folder + "/none").error().message,
              HasSubstr("/none: cannot be read as a folder: No such file"));
  EXPECT_THAT(AssetFolder::load(folder + "/index.html").error().message,
              HasSubstr("index.html: cannot be read as a folder: Not a directory"));
  for (const std::string bad : {"a.exe", "noext", ".hidden", "x.map.js.zip", "a.tar.gz"}) {
    write(bad, "x");
    EXPECT_THAT(error(), HasSubstr("/" + bad + ": the extension is none of html, js,")) << bad;
    fs::remove(folder + "/" + bad);
  }
  for (const std::string bad : {"a b.js", "a\".js", "a%20.js", "\xc3\xa4.js", "a\n.js", "?.js"}) {
    write(bad, "x");
    EXPECT_THAT(error(), HasSubstr("/" + bad + ": the name may have letters")) << bad;
    fs::remove(folder + "/" + bad);
  }
  write("b.js.br", "x");
  EXPECT_THAT(error(), HasSubstr("/b.js.br: found no b.js beside it"));
}

TEST_F(AssetFolderTest, OnlyFilesAreRead) {
  write("index.html", "<p>");
  ASSERT_EQ(::mkfifo((folder + "/pipe.js").c_str(), 0600), 0);
  EXPECT_THAT(error(), HasSubstr("/pipe.js: found something else than a file"));
  fs::remove(folder + "/pipe.js");
  fs::create_directory_symlink("/", folder + "/root.js");
  EXPECT_THAT(error(), HasSubstr("/root.js: found something else than a file"));
  fs::remove(folder + "/root.js");
  fs::create_symlink(folder + "/gone", folder + "/gone.js");
  EXPECT_THAT(error(), HasSubstr("/gone.js: cannot be read: No such file"));
  fs::remove(folder + "/gone.js");
  fs::create_symlink(folder + "/index.html", folder + "/same.html");
  EXPECT_EQ(error(), "");
}

TEST_F(AssetFolderTest, BytesAreBounded) {
  write("index.html", "<p>");
  write("a.txt", std::string(AssetFolder::kMaxBytes - 3, 'a'));
  EXPECT_EQ(error(), "");
  write("index.html", "<p>.");
  EXPECT_THAT(error(), HasSubstr("with this file the folder has over 16777216 bytes"));
  write("a.txt", "");
  fs::resize_file(folder + "/a.txt", std::uintmax_t{1} << 40);  // a hole
  EXPECT_THAT(error(), HasSubstr("/a.txt: with this file"));
}

TEST_F(AssetFolderTest, FilesAreBounded) {
  write("index.html", "<p>");
  for (int i = 1; i < AssetFolder::kMaxFiles; ++i) write(fmt::format("{}.js", i), "");
  EXPECT_EQ(error(), "");
  fs::create_directory(folder + "/one");
  EXPECT_THAT(error(), HasSubstr("the folder has over 1000 files and folders"));
}

TEST(FileRules, EveryKnownTypeIsServed) {
  std::string_view rest = kKnownTypes;
  int count = 0;
  while (!rest.empty()) {
    auto end = std::min(rest.find(", "), rest.size());
    EXPECT_NE(content_type(fmt::format("x.{}", rest.substr(0, end))), "") << rest;
    rest.remove_prefix(std::min(end + 2, rest.size()));
    ++count;
  }
  EXPECT_EQ(count, 9);
  for (const char* name : {"x", "x.", "js", "x.JS", "x.js.map", "x.wasm", ""})
    EXPECT_EQ(content_type(name), "") << name;
}

TEST(UiAssets, ThereIsAPage) {
  const Asset* page = find_asset(ui_assets(), "/");
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page->content_type, "text/html; charset=utf-8");
  EXPECT_THAT(text_of(page->raw), HasSubstr("<html"));
  for (const Asset& asset : ui_assets()) {
    EXPECT_EQ(asset.etag.size(), kEtagDigits) << asset.path;
    EXPECT_NE(asset.content_type, "") << asset.path;
    EXPECT_EQ(find_asset(ui_assets(), asset.path), &asset);
  }
}

// ui/plain is for where nothing can be built: it is small, and the policy of the page allows it.
TEST(PlainPage, IsSmallAndWithinItsPolicy) {
  auto loaded = AssetFolder::load(VT_FIXTURES "/../../ui/plain");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  std::size_t bytes = 0;
  for (const Asset& asset : (*loaded)->assets()) {
    bytes += asset.raw.size();
    const std::string text = text_of(asset.raw);
    for (const char* bad : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                            "eval(", "style=", "<style", "<script>", ".style",
                            "javascript:", "onclick=\"", "https://", "import("})
      EXPECT_EQ(text.find(bad), text.npos) << asset.path << ": " << bad;
  }
  EXPECT_LT(bytes, 12u << 10);
  for (const char* path : {"/", "/ui/plain.js", "/ui/plain.css", "/ui/icon.svg"})
    EXPECT_NE(find_asset((*loaded)->assets(), path), nullptr) << path;
}

}  // namespace
}  // namespace vitrine
