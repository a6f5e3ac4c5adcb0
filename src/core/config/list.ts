import { z } from 'zod'

/** A comma-separated list; empty entries are dropped. */
export const list = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .transform((entries) => entries.filter((entry) => entry !== ''))
