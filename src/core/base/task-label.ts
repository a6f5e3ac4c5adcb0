/** Label of a task, run or job: what spends are for, as the agent calls it. */
import { z } from 'zod'
import { Failure } from '../failures/failure.ts'

/** 1 to 64 printable ASCII characters, so that it fits an HTTP field. */
export const taskLabel = z
  .string()
  .regex(/^[\x21-\x7e]([\x20-\x7e]{0,62}[\x21-\x7e])?$/, 'must have 1 to 64 printable characters')

/** Reads the label that a call brings. @param place where it was sent. @throws Failure `invalid_request`. */
export function readTask(label: unknown, place: string): string | null {
  if (label === undefined) return null
  const parsed = taskLabel.safeParse(label)
  if (parsed.success) return parsed.data
  const message = 'must have 1 to 64 printable characters'
  throw new Failure('invalid_request', `${place}: ${message}`, { issues: [{ path: place, message }] })
}
