#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace vitrine {
namespace {

class MappedFiles : public testing::Test {
 protected:
  std::string make(const std::string& name, std::size_t bytes) {
    auto path = std::filesystem::path(testing::TempDir()) / name;
    std::ofstream(path) << std::string(bytes, 'x');
    paths_.push_back(path);
    return path.string();
  }
  void TearDown() override {
    for (const auto& path : paths_) std::filesystem::remove(path);
  }

 private:
  std::vector<std::filesystem::path> paths_;
};

TEST_F(MappedFiles, HoldTheBytes) {
  auto file = MappedFile::open(make("mapped_bytes", 10000));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->text(), std::string(10000, 'x'));
  auto empty = MappedFile::open(make("mapped_empty", 0));
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->bytes().empty());
}

TEST_F(MappedFiles, SayWhatIsWrong) {
  EXPECT_EQ(MappedFile::open("/no/such/file").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(MappedFile::open(testing::TempDir()).error().code, ErrorCode::kInvalid);
}

// Read in a process of its own, which ends.
TEST_F(MappedFiles, ThatAreCutShortEndTheProcessWithAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::string path = make("mapped_cut", 64 * 1024), beside = make("mapped_other", 64 * 1024);
  auto read_what_is_gone = [&] {
    auto file = MappedFile::open(path), other = MappedFile::open(beside);
    std::filesystem::resize_file(path, 100);
    volatile auto last = file->bytes().back();
    (void)last;
  };
  EXPECT_EXIT(read_what_is_gone(), testing::ExitedWithCode(1),
              "fatal: .*mapped_cut: the file was cut short");
}

}  // namespace
}  // namespace vitrine
