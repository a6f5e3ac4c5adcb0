/** The one gate for the proof of a person: every operation declares its proof, and the kernel asks for it. */
import { Failure } from '../../core/failures/failure.ts'
import type { Context } from '../context.ts'
import type { SpendPlan, Tool } from '../tool.ts'
import { requireRecentProof, requireStepUp } from './step-up.ts'

/**
 * Requires the proof that an operation declares. Only people prove themselves: a key has no second factor, and its scopes and
 * policy were granted with one, and the owner has proved a schedule when it was made. @param raw undecoded input.
 * @returns whether exactly this call must be signed, which the operation verifies: {@link requireSigned}.
 * @throws Failure `step_up_required`, `mfa_enrollment_required`, `signature_rejected`.
 */
export async function requireProof(
  { proof }: Pick<Tool, 'proof'>,
  raw: unknown,
  context: Pick<Context, 'principal' | 'settings' | 'now' | 'database' | 'hasSigner' | 'scheduledFor'>,
): Promise<boolean> {
  const { principal } = context
  if (principal.kind !== 'session' || context.scheduledFor !== undefined) return false
  if (proof === 'recent') requireRecentProof(context)
  if (proof === 'step-up') requireStepUp(context)
  if (proof !== 'signature') return false
  if (!(await context.hasSigner(context.database, principal.account.id))) {
    requireStepUp(context)
    return false
  }
  if (!hasSignature(raw)) throw buildUnsignedFailure(principal.person.id !== principal.account.id)
  return true
}

/** @throws Failure `signature_rejected` for a spend that none of its owner's signers signed. */
export function requireSigned(plan: SpendPlan & { readonly signedBy?: string | null }): void {
  if (typeof plan.signedBy !== 'string') throw buildUnsignedFailure()
}

function hasSignature(raw: unknown): boolean {
  return typeof raw === 'object' && raw !== null && 'signature' in raw && raw.signature !== undefined
}

/** @param isOther the person is not the one whose passkeys sign for the account. */
function buildUnsignedFailure(isOther = false): Failure {
  return new Failure(
    'signature_rejected',
    'This payment is not signed by a signer of the account. Nothing was reserved or sent.',
    {
      hint: isOther
        ? 'The wallet is guarded by the passkey or key of another owner (GET /api/wallets/signers): they pay, an agent pays under a policy, or you sign "typedData" of the intent with an EVM key that is registered there.'
        : 'Ask for its intent (the same path with /intent), and sign "challenge" with a passkey or "typedData" with a registered EVM key.',
    },
  )
}
