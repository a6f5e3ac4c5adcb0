/** Who pays whom, as institutions tell each other. @see https://intervasp.org (IVMS101.2023) */
import { Failure } from '../failures/failure.ts'

/** A person or an organisation. @property identification what its institution knows it by. */
export interface Party {
  readonly name: string
  readonly isLegal: boolean
  readonly country: string | null
  readonly identification: string
  readonly account: string
}

/** An institution. @property lei its Legal Entity Identifier; null where it is not known. */
export interface Institution {
  readonly name: string
  readonly lei: string | null
}

/** The longest `customerIdentification` that the standard takes. */
const LONGEST_IDENTIFICATION = 50

/** The payload of a transfer. @throws Failure `invalid_request` where the standard does not take it. */
export async function ivmsPayload({
  originator,
  beneficiary,
  originatingVasp,
  beneficiaryVasp,
}: {
  originator: Party
  beneficiary: Party
  originatingVasp: Institution
  beneficiaryVasp: Institution | null
}): Promise<Readonly<Record<string, unknown>>> {
  // The package brings its generators of test data along; only who needs it loads it.
  const { IVMS101_2023Schema, PayloadVersionCode } = await import('ivms101')
  const payload = {
    originator: { originatorPerson: [personOf(originator)] },
    beneficiary: { beneficiaryPerson: [personOf(beneficiary)] },
    originatingVASP: institutionOf(originatingVasp),
    ...(beneficiaryVasp === null ? {} : { beneficiaryVASP: institutionOf(beneficiaryVasp) }),
    payloadMetadata: { payloadVersion: PayloadVersionCode.V2023 },
  }
  const { error } = IVMS101_2023Schema.safeParse(payload)
  if (error === undefined) return payload
  const issues = error.issues.map(({ path, message }) => ({ path: path.map(String).join('.'), message }))
  throw new Failure('invalid_request', 'IVMS101.2023 does not take this Travel Rule data.', {
    issues,
    hint: 'Correct what "issues" names; paths are those of the payload.',
  })
}

function personOf({ name, isLegal, country, identification, account }: Party) {
  const shared = { customerIdentification: identification.slice(0, LONGEST_IDENTIFICATION) }
  const accountNumber = [account]
  if (isLegal)
    return {
      legalPerson: {
        name: legalName(name),
        ...shared,
        ...(country === null ? {} : { countryOfRegistration: countryOf(country) }),
      },
      accountNumber,
    }
  return {
    naturalPerson: {
      // Which of several words is the family name is nothing to guess at: the whole name is the primary identifier.
      name: { nameIdentifier: [{ primaryIdentifier: name, naturalPersonNameIdentifierType: 'LEGL' }] },
      ...shared,
      ...(country === null ? {} : { countryOfResidence: countryOf(country) }),
    },
    accountNumber,
  }
}

/** The standard knows the codes of ISO 3166-1 alone, and XX for whoever has none of them: Kosovo. */
function countryOf(code: string): string {
  return code === 'XK' ? 'XX' : code
}

function institutionOf({ name, lei }: Institution) {
  // Every legal person must be identified; one whose LEI nobody told is known by its name.
  const identified =
    lei === null
      ? { customerIdentification: name.slice(0, LONGEST_IDENTIFICATION) }
      : { nationalIdentification: { nationalIdentifier: lei, nationalIdentifierType: 'LEIX' } }
  return { legalPerson: { name: legalName(name), ...identified } }
}

function legalName(name: string) {
  return { nameIdentifier: [{ legalPersonName: name, legalPersonNameIdentifierType: 'LEGL' }] }
}
