import { z } from 'zod'

/** Text an administrator gives with a decision: 1 to 500 characters, without control characters. */
export const adminNote = z
  .string()
  .trim()
  .min(1)
  .max(500)
  .refine((text) => /^\P{Cc}*$/u.test(text), 'must not hold control characters')
