/** Identity verification in words. */
import type { Kyc } from '../../client/operations.ts'

interface Detail {
  readonly member: 'firstName' | 'lastName' | 'dateOfBirth' | 'country' | 'address'
  readonly words: string
  readonly hint?: string
  readonly autocomplete: string
}

export const details: readonly Detail[] = [
  { member: 'firstName', words: 'Given names', autocomplete: 'given-name' },
  { member: 'lastName', words: 'Family name', autocomplete: 'family-name' },
  { member: 'dateOfBirth', words: 'Date of birth', autocomplete: 'bday' },
  {
    member: 'country',
    words: 'Country',
    hint: 'Two letters, such as DE or JP.',
    autocomplete: 'country',
  },
  {
    member: 'address',
    words: 'Address',
    hint: 'Street, city and country you live in.',
    autocomplete: 'street-address',
  },
]

/** The word for a requirement, which is a path of the request such as `applicant.firstName`. */
export function requirementInWords(path: string): string {
  const member = lastMember(path)
  if (member === 'documents') return 'Identity document'
  return details.find((one) => one.member === member)?.words ?? member
}

/** `applicant.firstName` → `firstName`, `documents[0]` → `documents`. */
export function lastMember(path: string): string {
  return (path.split('.').at(-1) ?? path).replace(/\[\d*\]$/, '')
}

/** The reviewer's reasons. Codes become lower-case words. */
export function labelInWords(label: string): string {
  const known: Readonly<Record<string, string>> = {
    SANCTIONS_REVIEW: 'The name resembles one on a sanctions list. A person compares them.',
    IDENTITY_CHANGED: 'The data differs from an earlier application. A person compares them.',
    UNANSWERED: 'The reviewer did not answer. Send it again.',
  }
  const words = label.toLowerCase().replaceAll('_', ' ')
  return known[label] ?? `${words.charAt(0).toUpperCase()}${words.slice(1)}.`
}

export const outcomes: Readonly<Record<Kyc['status'], { readonly title: string; readonly words: string }>> = {
  init: { title: 'Not complete yet', words: 'Send what is missing, and the review begins.' },
  pending: { title: 'Under review', words: 'This takes a moment. It shows here as soon as it is decided.' },
  approved: { title: 'Verified', words: 'Nothing more is needed for this level.' },
  retry: { title: 'Not accepted', words: 'Correct your data and send it again.' },
  rejected: { title: 'Rejected', words: 'This cannot be applied for again. Ask the operator why.' },
}
