// SPDX-License-Identifier: Apache-2.0
#include "warpline/protection/aes_gcm.h"

#include <gtest/gtest.h>

#include <string_view>

#include "warpline/protection/protection_testing.h"

namespace warpline::protection {
namespace {

/// Test vector of McGrew, Viega: "The Galois/Counter Mode of Operation", appendix B, published with NIST SP 800-38D.
struct Vector {
  std::string_view key, nonce, header, text, sealed, tag;
};

constexpr Vector kVectors[] = {
    {"00000000000000000000000000000000", "000000000000000000000000", "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    {"00000000000000000000000000000000", "000000000000000000000000", "", "00000000000000000000000000000000",
     "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
     "ba637b391aafd255",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac97"
     "3d58e091473f5985",
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657"
     "ba637b39",
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac97"
     "3d58e091",
     "5bc94fbc3221a5db94fae95ae7121a47"},
};

class AesGcmVectors : public testing::TestWithParam<Vector> {
 protected:
  EvpCipher cipher_{EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr)};
  AesGcm sealer_{cipher_.get(), AesGcm::Direction::seal};
  AesGcm opener_{cipher_.get(), AesGcm::Direction::open};
};

TEST_P(AesGcmVectors, SealAndOpen) {
  const Vector& vector = GetParam();
  const auto nonce = array_of<GcmNonce>(vector.nonce);
  const Octets header = octets(vector.header);
  // Twice, the second time over what another key left.
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(sealer_.set_key(array_of<AesKey>(vector.key)));
    ASSERT_TRUE(opener_.set_key(array_of<AesKey>(vector.key)));
    Octets text = octets(vector.text);
    GcmTag tag{};
    EXPECT_TRUE(sealer_.seal(nonce, header, text, tag));
    EXPECT_EQ(text, octets(vector.sealed));
    EXPECT_EQ(tag, array_of<GcmTag>(vector.tag));
    EXPECT_TRUE(opener_.open(nonce, header, text, tag));
    EXPECT_EQ(text, octets(vector.text));
    ASSERT_TRUE(sealer_.set_key(AesKey{1}));
    ASSERT_TRUE(opener_.set_key(AesKey{1}));
    EXPECT_TRUE(sealer_.seal(nonce, header, text, tag));
    EXPECT_TRUE(opener_.open(nonce, header, text, tag));
  }
}

TEST_P(AesGcmVectors, WithoutAKeyNothingLeavesAndNothingIsBelieved) {
  const Vector& vector = GetParam();
  ASSERT_TRUE(sealer_.set_key(array_of<AesKey>(vector.key)));
  sealer_.clear();
  EXPECT_FALSE(sealer_.has_key());
  Octets text(32, 7);
  GcmTag tag;
  tag.fill(7);
  EXPECT_FALSE(sealer_.seal({}, {}, text, tag));
  EXPECT_EQ(text, Octets(32, 0));
  EXPECT_EQ(tag, GcmTag{});
  EXPECT_FALSE(opener_.open({}, {}, text, tag));
}

INSTANTIATE_TEST_SUITE_P(Nist, AesGcmVectors, testing::ValuesIn(kVectors),
                         [](const auto& vector) { return "TestCase" + std::to_string(vector.index + 1); });

}  // namespace
}  // namespace warpline::protection
