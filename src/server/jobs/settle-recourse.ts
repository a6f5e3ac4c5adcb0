/** Goes on with recourse that is open: what a crash or a slow payee left, and money that is awaited. */
import type { Services } from '../../kernel/context.ts'
import { signDocument } from '../../records/decisions/signed-document.ts'
import { continueDue } from '../../records/recourse/run-recourse.ts'

/** Runs one round. @param signal stops it early. */
export async function settleRecourse(services: Services, signal: AbortSignal): Promise<number> {
  const { receiptKey } = services.settings
  return continueDue({ ...services, signDocument: (of) => signDocument(receiptKey, of) }, signal)
}
