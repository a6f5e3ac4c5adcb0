import { z } from 'zod'

/** Member of a request that carries the signature of its intent, where the account needs one. */
export function signatureMember(description: string) {
  return z.string().min(1).max(8192).optional().describe(description)
}
