import { z } from 'zod'

/** Text an administrator gives with a decision: 1 to 500 characters, without control characters. */
export const adminNote = z
  .string()
  .trim()
  .min(1)
  .max(500)
  .regex(/^\P{Cc}*$/u, 'must not hold control characters')
