#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>
#include <string>

#include "kv.h"

namespace tools {
namespace {

bool is_wrong_input(int number) {
  try {
    throw_error(base::Error::of(number, "it"));
  } catch (const WrongInput&) {  // a runtime_error, too
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

TEST(KvOpen, WhatTheMediumOrTheSystemDidIsNoWrongInput) {
  for (const int number : {EIO, ENODATA, EILSEQ, EREMOTEIO, ENOSPC, EDQUOT, EPERM, EBADMSG, EBUSY, ENOMEM,
                           ENODEV, ENXIO, ENOMEDIUM, EBADE, ENOLINK, ESTALE, EUCLEAN, ETIME, ETIMEDOUT}) {
    EXPECT_FALSE(is_wrong_input(number)) << number;
    if (number != EBADMSG) EXPECT_NE(std::string(base::error_name(number)), "error") << number;
  }
  for (const int number : {EINVAL, ENOENT, EACCES, EROFS, EISDIR, ENOTDIR, ELOOP, ENAMETOOLONG})
    EXPECT_TRUE(is_wrong_input(number)) << number;
}

}  // namespace
}  // namespace tools
