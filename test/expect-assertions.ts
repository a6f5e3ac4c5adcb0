/** Setup of every test file: a test that asserts nothing fails. */
import { beforeEach, expect } from 'vitest'

beforeEach(() => {
  expect.hasAssertions()
})
