// The kernels for CPUs with AVX2; only this file is compiled for them.
#include <immintrin.h>

#include "batch/kernels_inside.h"

namespace batch {
namespace {

__m256i load_vector(const void* at) { return _mm256_load_si256(static_cast<const __m256i*>(at)); }

// For record sizes that divide a vector's size, or are a multiple of it. Each line is compared as a whole, and the search ends with the first line that
// has the key, so that it does not wait for the lines after that one.
template <class Sizes>
class VectorLayout : public Sizes {
  static constexpr uint32_t kVectorBytes = 32, kKeyBytes = Sizes::key_bytes(),
                            kRecordBytes = Sizes::record_bytes();
  static_assert(kKeyBytes == 4 || kKeyBytes == 8 || kKeyBytes == 16);
  static_assert(kVectorBytes % kRecordBytes == 0 || kRecordBytes % kVectorBytes == 0);

 public:
  explicit VectorLayout(const Shape& shape) : Sizes(shape), bucket_bytes_(shape.bucket_bytes) {}

  uint64_t matches(const std::byte* bucket, const Key& key) const {
    const __m256i wanted =
        kKeyBytes == 4 ? _mm256_set1_epi32(static_cast<int>(key.low))
        : kKeyBytes == 8
            ? _mm256_set1_epi64x(static_cast<long long>(key.low))
            : _mm256_set_epi64x(static_cast<long long>(key.high), static_cast<long long>(key.low),
                                static_cast<long long>(key.high), static_cast<long long>(key.low));
    for (uint32_t at = 0; at < bucket_bytes_; at += base::kLineBytes)
      if (const uint64_t found = matches_in_line(bucket + at, wanted); found != 0)
        return found << at / kRecordBytes;
    return 0;
  }

  [[clang::no_sanitize("thread")]] uint64_t tag_matches(const uint8_t* tags, uint8_t tag) const {
    const uint32_t slots = bucket_bytes_ / kRecordBytes;
    if (slots <= 16) {
      const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(tags));
      return static_cast<uint32_t>(
          _mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)))));
    }
    const __m256i wanted = _mm256_set1_epi8(static_cast<char>(tag));
    const uint64_t low =
        static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(load_vector(tags), wanted)));
    if (slots <= 32) return low;
    const uint64_t high =
        static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(load_vector(tags + 32), wanted)));
    return low | high << 32;
  }

 private:
  static __m256i equal(__m256i a, __m256i b) {
    return kKeyBytes == 4 ? _mm256_cmpeq_epi32(a, b) : _mm256_cmpeq_epi64(a, b);
  }

  // Returns a bit for each record of the line: does it have the key?
  static uint64_t matches_in_line(const std::byte* line, __m256i wanted) {
    const __m256i first = equal(load_vector(line), wanted);
    if constexpr (kRecordBytes == 64) {
      return first_of(first);
    } else {
      const __m256i second = equal(load_vector(line + kVectorBytes), wanted);
      if constexpr (kRecordBytes == 32) {
        return first_of(first) | first_of(second) << 1;
      } else if constexpr (kRecordBytes == 16) {
        // The half of each record that has its key, in the order first 0, second 0, first 1, second 1.
        const __m256i firsts = kKeyBytes == 8 ? _mm256_unpacklo_epi64(first, second)
                                              : _mm256_unpacklo_epi64(_mm256_shuffle_epi32(first, 0),
                                                                      _mm256_shuffle_epi32(second, 0));
        return static_cast<uint32_t>(_mm256_movemask_pd(
            _mm256_castsi256_pd(_mm256_permute4x64_epi64(firsts, _MM_SHUFFLE(3, 1, 2, 0)))));
      } else {
        static_assert(kRecordBytes == 8 && kKeyBytes == 4);
        const __m256i keys = _mm256_castps_si256(_mm256_shuffle_ps(
            _mm256_castsi256_ps(first), _mm256_castsi256_ps(second), _MM_SHUFFLE(2, 0, 2, 0)));
        return static_cast<uint32_t>(
            _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_permute4x64_epi64(keys, _MM_SHUFFLE(3, 1, 2, 0)))));
      }
    }
  }
  // Does the record at the beginning of the vector match?
  static uint64_t first_of(__m256i equals) {
    const auto bytes = static_cast<uint32_t>(_mm256_movemask_epi8(equals));
    constexpr uint32_t kKey = kKeyBytes == 16 ? 0xffff : kKeyBytes == 8 ? 0xff : 0xf;
    return (bytes & kKey) == kKey;
  }

  const uint32_t bucket_bytes_;
};

}  // namespace

void choose_avx2_kernels(const Shape& shape, Kernels& kernels) {
  static_cast<void>(
      with_common_sizes(shape, [&]<class Sizes>(Sizes) { set_kernels<VectorLayout<Sizes>>(kernels); }));
}

}  // namespace batch
