import { z } from 'zod'

/** A variable that lists: entries between commas, without empty ones. */
export const list = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .transform((entries) => entries.filter((entry) => entry !== ''))
