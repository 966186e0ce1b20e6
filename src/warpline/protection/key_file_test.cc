// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
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
  const auto key = parse_keys(text, "FILE");
  if (key.ok()) return "";
  EXPECT_EQ(key.error().kind, ErrorKind::usage);
  EXPECT_FALSE(key.error().fix.empty());
  return key.error().message();
}

TEST(KeyFile, DigitsAmongBlanksAndComments) {
  for (const char* form : {"%", "%\n", "# laboratory\n\n  %\t# until May\r\n", "%#\n#%", "\r\n%\r\n"}) {
    std::string text(form);
    text.replace(text.find('%'), 1, kDigits);
    const auto keys = parse_keys(text, "FILE");
    ASSERT_TRUE(keys.ok()) << form << ": " << keys.error().message();
    ASSERT_EQ((*keys)->keys().size(), 1U);
    EXPECT_EQ((*keys)->keys().front().secret, expected_key());
    EXPECT_EQ((*keys)->keys().front().name, "");
  }
}

TEST(KeyFile, SaysWhatIsWrong) {
  EXPECT_THAT(complaint(""), HasSubstr("there is none"));
  EXPECT_THAT(complaint("# nothing\n"), HasSubstr("there is none"));
  EXPECT_THAT(complaint("\n0001"), AllOf(HasSubstr("line 2 has 4 digits"), HasSubstr("a key has 32")));
  EXPECT_THAT(complaint(std::string(kDigits) + "ab"), HasSubstr("has 34 digits"));
  EXPECT_THAT(complaint(std::string(kDigits) + "\n\nagain " + kDigits),
              HasSubstr("line 3 holds the key of line 1 again"));
  EXPECT_THAT(complaint("00010203040506070809-a0b0c0d0e0f"),
              HasSubstr("line 1 has no hexadecimal digit at character 21"));
  EXPECT_THAT(complaint("000102030405060 708090a0b0c0d0e0f"), HasSubstr("line 1 has 17 digits"));
  EXPECT_THAT(complaint("# keys\na/b " + std::string(kDigits)), HasSubstr("line 2 begins with no name"));
  EXPECT_THAT(complaint(std::string(33, 'a') + " " + kDigits), HasSubstr("line 1 begins with no name"));
  EXPECT_THAT(complaint(std::string(kDigits) + " " + kDigits), HasSubstr("line 1 begins with no name"));
  EXPECT_THAT(complaint("a " + std::string(kDigits) + " b"),
              HasSubstr("line 1 has no hexadecimal digit at character 35"));
  EXPECT_THAT(complaint("a " + std::string(kDigits) + "\na 000102030405060708090a0b0c0d0e00"),
              HasSubstr("line 2 has the name of line 1"));
}

TEST(KeyFile, SeveralWithNamesOrWithout) {
  const auto keys = parse_keys("alice\t" + std::string(kDigits) + "\n101112131415161718191a1b1c1d1e1f # spare\r\n" +
                                   "the-3rd.key_ 202122232425262728292a2b2c2d2e2f",
                               "FILE");
  ASSERT_TRUE(keys.ok()) << keys.error().message();
  const std::span<const Key> all = (*keys)->keys();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "alice");
  EXPECT_EQ(all[0].secret, expected_key());
  EXPECT_EQ(all[1].name, "");
  EXPECT_EQ(all[1].secret, array_of<AesKey>("101112131415161718191a1b1c1d1e1f"));
  EXPECT_EQ(all[2].name, "the-3rd.key_");
}

TEST(KeyFile, NeverShowsTheKey) {
  for (const char* text : {"deadbeefdeadbeef", "deadbeefdeadbeefdeadbeefdeadbeefdead", "deadbeefzdeadbeef",
                           "deadbeefdeadbeef deadbeefdeadbeef", "deadbeefdeadbeefdeadbeefdeadbeef deadbeef",
                           "deadbeefdeadbeefdeadbeefdeadbeef\ndeadbeefdeadbeefdeadbeefdeadbeef"}) {
    EXPECT_THAT(complaint(text), HasSubstr("line "));
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
  EXPECT_EQ((*read_key_file(path_))->keys().front().secret, expected_key());
  for (const mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const auto key = read_key_file(path_);
    ASSERT_FALSE(key.ok());
    EXPECT_EQ(key.error().kind, ErrorKind::environment);
    EXPECT_THAT(key.error().message(), HasSubstr("chmod 600 " + path_));
  }
}

TEST_F(KeyFileOnDisk, NewKeysAreMadeOnceAndAdded) {
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_TRUE(create_key_file(path_, "alice").ok());
  struct stat facts{};
  ASSERT_EQ(stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  const Result<void> again = create_key_file(path_, "");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::usage);
  EXPECT_THAT(again.error().message(), HasSubstr("--append"));
  ASSERT_TRUE(append_new_key(path_, "").ok());
  ASSERT_TRUE(append_new_key(path_, "bob").ok());
  EXPECT_THAT(append_new_key(path_, "alice").error().message(), HasSubstr("one there has that name"));
  EXPECT_THAT(append_new_key(path_, "a b").error().message(), HasSubstr("cannot call a key"));
  EXPECT_THAT(create_key_file(path_ + ".other", "#").error().message(), HasSubstr("cannot call a key"));
  EXPECT_NE(access((path_ + ".other").c_str(), F_OK), 0);
  const auto keys = read_key_file(path_);
  ASSERT_TRUE(keys.ok()) << keys.error().message();
  const std::span<const Key> all = (*keys)->keys();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "alice");
  EXPECT_EQ(all[1].name, "");
  EXPECT_EQ(all[2].name, "bob");
}

TEST_F(KeyFileOnDisk, AKeyIsAddedBehindALineWithoutAnEndAndToNoWrongFile) {
  write(kDigits);
  ASSERT_TRUE(append_new_key(path_, "next").ok());
  EXPECT_EQ((*read_key_file(path_))->keys().size(), 2U);
  write("no key\n");
  EXPECT_FALSE(append_new_key(path_, "next").ok());
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "no key\n");
  EXPECT_THAT(append_new_key(path_ + ".none", "").error().message(), HasSubstr("message key new"));
  EXPECT_EQ(create_key_file("/nonexistent/key", "").error().kind, ErrorKind::environment);
}

TEST_F(KeyFileOnDisk, NotThereAFolderAndTooLong) {
  write(std::string(1 << 20, '\n') + kDigits);
  EXPECT_THAT(read_key_file(path_).error().message(), HasSubstr("longer than 1048576 bytes"));
  EXPECT_THAT(read_key_file(path_ + ".none").error().message(), HasSubstr("No such file"));
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  EXPECT_THAT(read_key_file(path_).error().message(), HasSubstr("Is a directory"));
  ASSERT_EQ(rmdir(path_.c_str()), 0);
}

}  // namespace
}  // namespace warpline::protection
