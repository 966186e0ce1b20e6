// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "warpline/protection/protection_testing.h"

namespace warpline::protection {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDigits = "000102030405060708090a0B0C0d0e0f";

AesKey expected_key() { return array_of<AesKey>("000102030405060708090a0b0c0d0e0f"); }

std::string complaint(std::string_view text) {
  const Result<AesKey> key = parse_key(text, "FILE");
  if (key.ok()) return "";
  EXPECT_EQ(key.error().kind, ErrorKind::usage);
  EXPECT_FALSE(key.error().fix.empty());
  return key.error().message();
}

TEST(KeyFile, DigitsAmongBlanksAndComments) {
  for (const char* form : {"%", "%\n", "# laboratory\n\n  %\t# until May\r\n", "%#\n#%", "\r\n%\r\n"}) {
    std::string text(form);
    text.replace(text.find('%'), 1, kDigits);
    const Result<AesKey> key = parse_key(text, "FILE");
    ASSERT_TRUE(key.ok()) << form << ": " << key.error().message();
    EXPECT_EQ(*key, expected_key());
  }
}

TEST(KeyFile, SaysWhatIsWrong) {
  EXPECT_THAT(complaint(""), HasSubstr("there is none"));
  EXPECT_THAT(complaint("# nothing\n"), HasSubstr("there is none"));
  EXPECT_THAT(complaint("\n0001"), AllOf(HasSubstr("line 2 has 4 digits"), HasSubstr("a key has 32")));
  EXPECT_THAT(complaint(std::string(kDigits) + "ab"), HasSubstr("has 34 digits"));
  EXPECT_THAT(complaint(std::string(kDigits) + "\n" + kDigits), HasSubstr("line 2 holds a second key"));
  EXPECT_THAT(complaint("00010203040506070809-a0b0c0d0e0f"), HasSubstr("character 21 of line 1"));
  EXPECT_THAT(complaint("000102030405060 708090a0b0c0d0e0f"), HasSubstr("character 16 of line 1"));
}

TEST(KeyFile, NeverShowsTheKey) {
  for (const char* text : {"deadbeefdeadbeef", "deadbeefdeadbeefdeadbeefdeadbeefdead", "deadbeefzdeadbeef"}) {
    EXPECT_THAT(complaint(text), Not(HasSubstr("dead")));
  }
}

class KeyFileOnDisk : public testing::Test {
 protected:
  KeyFileOnDisk() {
    char name[] = "/tmp/warpline_key_XXXXXX";
    const int file = mkstemp(name);
    EXPECT_GE(file, 0);
    close(file);
    path_ = name;
  }
  ~KeyFileOnDisk() override { unlink(path_.c_str()); }

  void write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }

  std::string path_;
};

TEST_F(KeyFileOnDisk, OfItsOwnerAlone) {
  write(kDigits);
  EXPECT_EQ(*read_key_file(path_), expected_key());
  for (const mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const Result<AesKey> key = read_key_file(path_);
    ASSERT_FALSE(key.ok());
    EXPECT_EQ(key.error().kind, ErrorKind::environment);
    EXPECT_THAT(key.error().message(), HasSubstr("chmod 600 " + path_));
  }
}

TEST_F(KeyFileOnDisk, NotThereAFolderAndTooLong) {
  write(std::string(5000, '\n') + kDigits);
  EXPECT_THAT(read_key_file(path_).error().message(), HasSubstr("longer than 4096 bytes"));
  EXPECT_THAT(read_key_file(path_ + ".none").error().message(), HasSubstr("No such file"));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  EXPECT_THAT(read_key_file(path_).error().message(), HasSubstr("Is a directory"));
  ASSERT_EQ(rmdir(path_.c_str()), 0);
}

}  // namespace
}  // namespace warpline::protection
